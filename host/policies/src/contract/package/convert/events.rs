use wasmspawner_core::policy::{Happening, LabEvent};

use super::super::bindings::hooks::events as wit;
use crate::limits::as_millis;

pub(in super::super) fn lab_event(event: &LabEvent) -> wit::Event {
    let LabEvent { what, at, username, server, operation, image, took, reason, message, subject: _ } = event;
    wit::Event {
        what: match what {
            Happening::Spawned => wit::Happening::Spawned,
            Happening::Ready => wit::Happening::Ready,
            Happening::Failed => wit::Happening::Failed,
            Happening::Stopped => wit::Happening::Stopped,
            Happening::Denied => wit::Happening::Denied,
        },
        at_ms: u64::try_from(at.as_millisecond()).unwrap_or_default(),
        username: username.clone(),
        server: server.clone(),
        operation: operation.clone(),
        image: image.clone(),
        took_ms: took.map(as_millis),
        reason: reason.clone(),
        message: message.clone(),
    }
}
