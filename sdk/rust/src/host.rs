//! Functions of the host. Outside a component (in tests) log lines go to standard error, the time is what
//! `testing::at` says, and random bytes are zeros.

#[cfg(target_arch = "wasm32")]
use crate::bindings::host;
pub use crate::bindings::host::{
    ChildKind, ChildOfLab, KnownImage, LabBlueprint, SiteData, UseOfDays, UseOfUser,
};

/// The level of a log line.
#[derive(Clone, Copy, Debug)]
pub enum Level {
    /// For the author of the policy.
    Debug,
    /// For the operator.
    Info,
    /// A possible problem.
    Warn,
    /// Something failed.
    Error,
}

/// Writes a line to the service's log; at most 64 lines and 16 KiB per call of a hook.
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

/// Logs a line for the author of the policy.
pub fn debug(message: &str) {
    log(Level::Debug, message);
}

/// Logs a line for the operator.
pub fn info(message: &str) {
    log(Level::Info, message);
}

/// Logs a possible problem.
pub fn warn(message: &str) {
    log(Level::Warn, message);
}

/// Logs a failure.
pub fn error(message: &str) {
    log(Level::Error, message);
}

/// The time in milliseconds since the Unix epoch. It is constant during one call of a hook.
pub fn now_millis() -> u64 {
    #[cfg(target_arch = "wasm32")]
    return host::clock_now();
    #[cfg(not(target_arch = "wasm32"))]
    return crate::clock_stand_in::now_millis();
}

/// Random bytes; at most 1024 per call of this function.
pub fn random(length: u32) -> Vec<u8> {
    #[cfg(target_arch = "wasm32")]
    return host::random(length);
    #[cfg(not(target_arch = "wasm32"))]
    return vec![0; length as usize];
}

/// Expands the fields of the lab in a template of the operator, such as `{username}`; `{{` stands for a brace. Outside
/// of `BuildPod::customize` there is no lab: the template is checked and returned unchanged. Never pass text of a user.
///
/// # Errors
/// What is wrong with the template, and which fields there are.
pub fn expand(template: &str) -> Result<String, String> {
    // Most texts contain no field, and a call of the host takes time.
    if !template.contains(['{', '}']) {
        return Ok(template.into());
    }
    #[cfg(target_arch = "wasm32")]
    return host::expand(template);
    #[cfg(not(target_arch = "wasm32"))]
    return crate::lab_stand_in::expand(template);
}

/// What the service knows about the images of a repository, such as `registry.example.org/site/lab`; newest first.
pub fn images(repository: &str) -> Vec<KnownImage> {
    #[cfg(target_arch = "wasm32")]
    return host::images(repository);
    #[cfg(not(target_arch = "wasm32"))]
    return crate::images_stand_in::images(repository);
}

/// The data of this name, which the policy's `data` in the service's configuration names; `None` if it names no such. Do not call it
/// in `from_config`, which runs once. Tests set it with `testing::with_data`.
pub fn data(name: &str) -> Option<SiteData> {
    #[cfg(target_arch = "wasm32")]
    return host::data(name);
    #[cfg(not(target_arch = "wasm32"))]
    return crate::data_stand_in::data(name);
}

/// The number of nodes on which labs can run; 0 if the service does not watch nodes.
pub fn lab_nodes() -> u32 {
    #[cfg(target_arch = "wasm32")]
    return host::lab_nodes();
    #[cfg(not(target_arch = "wasm32"))]
    return crate::images_stand_in::lab_nodes();
}

/// The kernel or Dask pool that the call is about; `None` if it is about a lab itself. Known to `Authorize`, `Quota`,
/// `BuildPod` and `LabServer`. For a pool, `BuildPod` decides about one worker; the scheduler is like it.
pub fn child() -> Option<ChildOfLab> {
    #[cfg(target_arch = "wasm32")]
    return host::child();
    #[cfg(not(target_arch = "wasm32"))]
    return crate::subject_stand_in::child();
}

/// What the user has now, of all labs together, without what the call is about. Known where [`child`] is; zeros
/// elsewhere.
pub fn present_use() -> UseOfUser {
    #[cfg(target_arch = "wasm32")]
    return host::present_use();
    #[cfg(not(target_arch = "wasm32"))]
    return crate::subject_stand_in::present_use();
}

/// What the user has used in the last `days` days of UTC, the present one included: 1 is today; at most 30. Known where [`child`]
/// is; zeros elsewhere. Tests set it with `testing::Subject`.
pub fn past_use(days: u32) -> UseOfDays {
    #[cfg(target_arch = "wasm32")]
    return host::past_use(days);
    #[cfg(not(target_arch = "wasm32"))]
    return crate::subject_stand_in::past_use(days);
}

/// The blueprints of the lab that the call is about, or of the lab of the child that it is about; `None` if none holds. Known
/// to `Authorize` for a start, `Quota`, `BuildPod` and `LabServer`. What they want for the pod comes before the answers of all
/// policies, so a policy that answers something else for a field has the last word.
pub fn blueprint() -> Option<LabBlueprint> {
    #[cfg(target_arch = "wasm32")]
    return host::blueprint();
    #[cfg(not(target_arch = "wasm32"))]
    return crate::subject_stand_in::blueprint();
}

pub(crate) fn config() -> String {
    #[cfg(target_arch = "wasm32")]
    return host::config();
    #[cfg(not(target_arch = "wasm32"))]
    return "{}".into();
}

/// Nothing was used.
impl Default for UseOfDays {
    fn default() -> Self {
        Self {
            lab_seconds: 0,
            kernel_seconds: 0,
            dask_worker_seconds: 0,
            cpu_seconds: 0,
            memory_gib_seconds: 0,
        }
    }
}
