//! Functions of the host. Outside a component (in tests) log lines go to standard error, `testing::at` sets the time,
//! and random bytes are zeros.

#[cfg(target_arch = "wasm32")]
use crate::bindings::host;
pub use crate::bindings::host::{
    ChildKind, ChildOfLab, KnownImage, LabBlueprint, SiteData, UseOfDays, UseOfUser,
};
use crate::options::Options;

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
/// of `BuildPod`, `LabServer` and `LabFiles` there is no lab: the template is checked and returned unchanged. Never pass text of a user.
///
/// # Errors
/// The mistake in the template, and the list of fields.
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

/// The images of a repository, such as `registry.example.org/site/lab`, that the service knows; newest first.
pub fn images(repository: &str) -> Vec<KnownImage> {
    #[cfg(target_arch = "wasm32")]
    return host::images(repository);
    #[cfg(not(target_arch = "wasm32"))]
    return crate::images_stand_in::images(repository);
}

/// The site's data with this name, from the policy's `data` in the service's configuration; `None` if it has no such
/// name. Do not call this in `from_config`, which runs once. Tests set the data with `testing::with_data`.
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

/// The kernel or Dask pool that the call is about; `None` if it is about a lab itself. Available to `Authorize`,
/// `Quota`, `BuildPod` and `LabServer`. For a pool, `BuildPod` decides about one worker, and the scheduler gets the
/// same settings.
pub fn child() -> Option<ChildOfLab> {
    #[cfg(target_arch = "wasm32")]
    return host::child();
    #[cfg(not(target_arch = "wasm32"))]
    return crate::subject_stand_in::child();
}

/// The present use of all labs of the user together, without the subject of the call. Available where [`child`] is;
/// zeros elsewhere.
pub fn present_use() -> UseOfUser {
    #[cfg(target_arch = "wasm32")]
    return host::present_use();
    #[cfg(not(target_arch = "wasm32"))]
    return crate::subject_stand_in::present_use();
}

/// The user's use of resources in the last `days` days of UTC, including the present one: 1 is today; at most 30.
/// Available where [`child`] is; zeros elsewhere. Tests set it with `testing::Subject`.
pub fn past_use(days: u32) -> UseOfDays {
    #[cfg(target_arch = "wasm32")]
    return host::past_use(days);
    #[cfg(not(target_arch = "wasm32"))]
    return crate::subject_stand_in::past_use(days);
}

/// The blueprints of the lab that the call is about, or of the lab that owns the child; `None` if none applies.
/// Available to `Authorize` for a start, `Quota`, `BuildPod` and `LabServer`. Their settings for the pod come before
/// the answers of all policies, so a policy that answers something else for a field has the last word.
pub fn blueprint() -> Option<LabBlueprint> {
    #[cfg(target_arch = "wasm32")]
    return host::blueprint();
    #[cfg(not(target_arch = "wasm32"))]
    return crate::subject_stand_in::blueprint();
}

/// The submission of the form with which this server of the user was last started; empty if it never was, or if the site
/// does not want it. Available to `Form::fields` and `Form::html`; empty elsewhere. The service itself selects these choices in
/// fields, so this is for a policy's own HTML. The user has written the values: escape them, and use only those that
/// are still allowed.
pub fn last_options() -> Options {
    #[cfg(target_arch = "wasm32")]
    return host::last_options().into();
    #[cfg(not(target_arch = "wasm32"))]
    return crate::subject_stand_in::last_options();
}

pub(crate) fn config() -> String {
    #[cfg(target_arch = "wasm32")]
    return host::config();
    #[cfg(not(target_arch = "wasm32"))]
    return "{}".into();
}

/// No use of resources.
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
