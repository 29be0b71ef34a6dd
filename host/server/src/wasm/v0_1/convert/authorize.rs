use wasmspawner_core::policy::{Action, AuthorizeRequest, Verdict};

use super::user::{option_entries, user};
use crate::wasm::message::message;
use crate::wasm::v0_1::bindings::hooks::authorize as wit;

pub(in crate::wasm::v0_1) fn authorize_request(request: &AuthorizeRequest) -> wit::Request {
    let action = match request.action {
        Action::Spawn => wit::Action::Spawn,
        Action::Stop => wit::Action::Stop,
        Action::StartKernel => wit::Action::StartKernel,
        Action::DaskPool => wit::Action::DaskPool,
        Action::Scale => wit::Action::Scale,
    };
    wit::Request {
        action,
        user: user(&request.user),
        server: request.server.clone(),
        options: option_entries(&request.options),
    }
}

pub(in crate::wasm::v0_1) fn verdict(verdict: wit::Verdict) -> Verdict {
    match verdict {
        wit::Verdict::Allow => Verdict::Allow,
        wit::Verdict::Deny(text) => Verdict::Deny(message(text)),
    }
}
