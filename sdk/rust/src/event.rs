//! Events of labs and their children.

pub use crate::bindings::events::{Event, Happening};

impl Event {
    /// An event about the default server of a user, with the present time and no further details.
    pub fn new(what: Happening, username: impl Into<String>) -> Self {
        Self {
            what,
            at_ms: crate::host::now_millis(),
            username: username.into(),
            server: String::new(),
            operation: None,
            image: None,
            took_ms: None,
            reason: None,
            message: None,
        }
    }
}
