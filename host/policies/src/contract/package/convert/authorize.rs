use wasmspawner_core::policy::{Action, AuthorizeRequest, Verdict};

use super::super::bindings::hooks::authorize as wit;
use super::user::{denial, option_entries, user};
use crate::errors::readable;

pub(in super::super) fn authorize_request(request: &AuthorizeRequest) -> wit::Request {
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

pub(in super::super) fn verdict(verdict: wit::Verdict) -> Verdict {
    match verdict {
        wit::Verdict::Allow => Verdict::Allow,
        wit::Verdict::Deny(why) => Verdict::Deny(readable(denial(why))),
    }
}
