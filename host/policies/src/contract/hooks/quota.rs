//! `quota`: sets the limits of a user.

use serde_json::Value;
use wasmspawner_core::policy::{Subject, User};
use wasmspawner_core::users::quota::{Quota, Usage};

use super::{About, Exports, Question, call, input, refusal};
use crate::contract::bindings::hooks::quota as wit;
use crate::contract::convert::user;
use crate::contract::guest::Calling;
use crate::names::hook::Hook;

/// Asks for the limits of a user. All policies answer, and the smallest value of each limit applies.
#[derive(Clone)]
pub(crate) struct LimitUser {
    pub(crate) user: User,
    pub(crate) usage: Usage,
    pub(crate) subject: Subject,
}

impl Question for LimitUser {
    const HOOK: Hook = Hook::new("quota.limits");

    type Interface = wit::GuestIndices;
    type Answer = Quota;

    fn interface(exports: &Exports) -> Option<&wit::GuestIndices> {
        exports.quota.as_ref()
    }

    fn call(&self, interface: &wit::GuestIndices) -> Calling<Quota> {
        let (user, usage) = (user(&self.user), wit::Usage { labs: self.usage.labs });
        call!(interface, |exports, store| exports.call_limits(&mut store, &user, usage), |answer| {
            answer.map(quota).map_err(refusal)
        })
    }

    fn about(&self) -> About {
        self.subject.clone().into()
    }

    fn input(&self) -> Option<Value> {
        Some(input::about(input::of_user(&self.user, ""), &self.subject))
    }
}

fn quota(quota: wit::Quota) -> Quota {
    Quota {
        cpu_millis: quota.cpu_millis,
        memory_bytes: quota.memory_bytes,
        storage_bytes: quota.storage_bytes,
        pods: quota.pods,
        labs: quota.labs,
        extended: quota.extended.into_iter().collect(),
    }
}
