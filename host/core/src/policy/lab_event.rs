use std::time::Duration;

use jiff::Timestamp;

use super::Subject;

/// An event in the life of a lab, or of a kernel or pool that a lab has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Happening {
    /// The start was accepted.
    Spawned,
    /// The lab or child is ready.
    Ready,
    /// The lab or child could not be started, or ended by itself.
    Failed,
    /// The lab or child was stopped, and nothing of it is left.
    Stopped,
    /// A user was denied a request.
    Denied,
}

/// An event of a lab, as policies receive it.
#[derive(Debug, Clone, PartialEq)]
pub struct LabEvent {
    /// The kind of event.
    pub what: Happening,
    /// The time of the event.
    pub at: Timestamp,
    /// The lab's user.
    pub username: String,
    /// The lab's server; empty for the default server.
    pub server: String,
    /// The operation, as in the lab's history; `None` if there was none.
    pub operation: Option<String>,
    /// The image, if it was decided.
    pub image: Option<String>,
    /// The duration of the operation, if it has ended.
    pub took: Option<Duration>,
    /// One word for the reason of a failure.
    pub reason: Option<String>,
    /// The reason in words, as the user saw it.
    pub message: Option<String>,
    /// The kernel or pool that the lab has started, if the event is about one.
    pub subject: Subject,
}
