//! What the host gives a policy. Outside a component (tests) logging goes to standard error, the time
//! stands still and random bytes are zeros.

#[cfg(target_arch = "wasm32")]
use crate::bindings::host;

/// How serious a log line is.
#[derive(Clone, Copy, Debug)]
pub enum Level {
    /// For the author of the policy.
    Debug,
    /// For the operator.
    Info,
    /// Something is off.
    Warn,
    /// Something failed.
    Error,
}

/// Writes to the service's log; at most 64 lines and 16 KiB a call.
pub fn log(level: Level, message: &str) {
    #[cfg(target_arch = "wasm32")]
    {
        let level = match level {
            Level::Debug => host::Level::Debug,
            Level::Info => host::Level::Info,
            Level::Warn => host::Level::Warn,
            Level::Error => host::Level::Error,
        };
        host::log(level, message);
    }
    #[cfg(not(target_arch = "wasm32"))]
    {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "{level:?}: {message}");
    }
}

/// A line for the author of the policy.
pub fn debug(message: &str) {
    log(Level::Debug, message);
}

/// A line for the operator.
pub fn info(message: &str) {
    log(Level::Info, message);
}

/// Something is off.
pub fn warn(message: &str) {
    log(Level::Warn, message);
}

/// Something failed.
pub fn error(message: &str) {
    log(Level::Error, message);
}

/// Milliseconds since the Unix epoch; constant during a call.
pub fn now_millis() -> u64 {
    #[cfg(target_arch = "wasm32")]
    return host::clock_now();
    #[cfg(not(target_arch = "wasm32"))]
    return 0;
}

/// Unpredictable bytes; at most 1024 a call.
pub fn random(length: u32) -> Vec<u8> {
    #[cfg(target_arch = "wasm32")]
    return host::random(length);
    #[cfg(not(target_arch = "wasm32"))]
    return vec![0; length as usize];
}

/// Fills the fields of this lab into a template that the operator wrote, such as `{username}`; `{{` is a brace. Outside
/// `BuildPod::customize` no lab is known: the template is checked and comes back as it is. Never give it what a user
/// typed.
///
/// # Errors
/// What is wrong with the template, and which fields there are.
pub fn expand(template: &str) -> Result<String, String> {
    // Most texts are no templates, and a call of the host is not free.
    if !template.contains(['{', '}']) {
        return Ok(template.into());
    }
    #[cfg(target_arch = "wasm32")]
    return host::expand(template);
    #[cfg(not(target_arch = "wasm32"))]
    return crate::lab_stand_in::expand(template);
}

pub(crate) fn config() -> String {
    #[cfg(target_arch = "wasm32")]
    return host::config();
    #[cfg(not(target_arch = "wasm32"))]
    return "{}".into();
}
