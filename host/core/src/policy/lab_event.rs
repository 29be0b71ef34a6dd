use std::time::Duration;

use jiff::Timestamp;

use super::Subject;

/// What has happened to a lab, or to what a lab has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Happening {
    /// Its start was accepted.
    Spawned,
    /// It is ready.
    Ready,
    /// It could not be started, or ended by itself.
    Failed,
    /// It was stopped, and nothing of it is left.
    Stopped,
    /// Somebody was not allowed what they wanted.
    Denied,
}

/// What policies hear about a lab.
#[derive(Debug, Clone, PartialEq)]
pub struct LabEvent {
    /// What has happened.
    pub what: Happening,
    /// When.
    pub at: Timestamp,
    /// The lab's user.
    pub username: String,
    /// The lab's server; empty for the default server.
    pub server: String,
    /// The operation, as in the lab's history; `None` if there was none.
    pub operation: Option<String>,
    /// The image, if it was decided.
    pub image: Option<String>,
    /// How long the operation took, if it has ended.
    pub took: Option<Duration>,
    /// One word for the reason of a failure.
    pub reason: Option<String>,
    /// The reason in words, as the user saw it.
    pub message: Option<String>,
    /// What the lab has started, if the event is about that.
    pub subject: Subject,
}
