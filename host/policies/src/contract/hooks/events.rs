//! `events`: hears what happened to labs.

use wasmspawner_core::policy::{Happening, LabEvent};

use super::{About, Exports, Question, call};
use crate::contract::bindings::hooks::events as wit;
use crate::contract::guest::Calling;
use crate::limits::as_millis;
use crate::names::hook::Hook;

impl Question for LabEvent {
    const HOOK: Hook = Hook::new("events.on-event");

    type Interface = wit::GuestIndices;
    type Answer = ();

    fn interface(exports: &Exports) -> Option<&wit::GuestIndices> {
        exports.events.as_ref()
    }

    fn call(&self, interface: &wit::GuestIndices) -> Calling<()> {
        let event = lab_event(self);
        call!(interface, |exports, store| exports.call_on_event(&mut store, &event), Ok)
    }

    fn about(&self) -> About {
        self.subject.clone().into()
    }
}

fn lab_event(event: &LabEvent) -> wit::Event {
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
