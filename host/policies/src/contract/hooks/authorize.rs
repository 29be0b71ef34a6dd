//! `authorize`: decides whether an action is allowed.

use serde_json::{Value, json};
use wasmspawner_core::policy::{Action, AuthorizeRequest, Verdict};

use super::{About, Exports, Question, call, input, refusal};
use crate::contract::bindings::hooks::authorize as wit;
use crate::contract::convert::{denial, option_entries, user};
use crate::contract::guest::Calling;
use crate::errors::readable;
use crate::names::hook::Hook;

/// The verdicts of the chain go up to the first denial: the action is allowed if all policies allow it.
impl Question for AuthorizeRequest {
    const HOOK: Hook = Hook::new("authorize.decide");

    type Interface = wit::GuestIndices;
    type Answer = Verdict;

    fn interface(exports: &Exports) -> Option<&wit::GuestIndices> {
        exports.authorize.as_ref()
    }

    fn call(&self, interface: &wit::GuestIndices) -> Calling<Verdict> {
        let request = authorize_request(self);
        call!(interface, |exports, store| exports.call_decide(&mut store, &request), |answer| {
            answer.map(verdict).map_err(refusal)
        })
    }

    fn about(&self) -> About {
        self.subject.clone().into()
    }

    fn is_last(verdict: &Verdict) -> bool {
        matches!(verdict, Verdict::Deny(_))
    }

    fn input(&self) -> Option<Value> {
        let mut input = input::with_options(input::of_user(&self.user, &self.server), &self.options);
        input["action"] = json!(self.action);
        Some(input::about(input, &self.subject))
    }
}

fn authorize_request(request: &AuthorizeRequest) -> wit::Request {
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

fn verdict(verdict: wit::Verdict) -> Verdict {
    match verdict {
        wit::Verdict::Allow => Verdict::Allow,
        wit::Verdict::Deny(why) => Verdict::Deny(readable(denial(why))),
    }
}
