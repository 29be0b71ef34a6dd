//! `inject`: decides whether a lab may be put into a workload, and with what.

use serde_json::{Value, json};
use wasmspawner_core::policy::{InjectRequest, InjectVerdict, Subject, VolumeAccess, WorkloadAccess};
use wasmspawner_core::workload::WorkloadKind;

use super::{About, Exports, Question, call, input, refusal};
use crate::contract::bindings::hooks::inject as wit;
use crate::contract::convert::{denial, option_entries, user};
use crate::contract::guest::Calling;
use crate::errors::readable;
use crate::names::hook::Hook;

/// Asks whether a lab may be put into a workload. The verdicts of the chain go up to the first denial.
#[derive(Clone)]
pub(crate) struct Inject {
    pub(crate) request: InjectRequest,
    pub(crate) subject: Subject,
}

impl Question for Inject {
    const HOOK: Hook = Hook::new("inject.decide");

    type Interface = wit::GuestIndices;
    type Answer = InjectVerdict;

    fn interface(exports: &Exports) -> Option<&wit::GuestIndices> {
        exports.inject.as_ref()
    }

    fn call(&self, interface: &wit::GuestIndices) -> Calling<InjectVerdict> {
        let request = inject_request(&self.request);
        call!(interface, |exports, store| exports.call_decide(&mut store, &request), |answer| {
            answer.map(inject_verdict).map_err(refusal)
        })
    }

    fn about(&self) -> About {
        self.subject.clone().into()
    }

    fn is_last(verdict: &InjectVerdict) -> bool {
        matches!(verdict, InjectVerdict::Deny(_))
    }

    fn input(&self) -> Option<Value> {
        let InjectRequest { user, server, options, workload: seen } = &self.request;
        let mut input = input::with_options(input::of_user(user, server), options);
        input["workload"] = json!({
            "workload": seen.workload.to_string(), "containers": seen.containers, "volumes": seen.volumes,
        });
        Some(input::about(input, &self.subject))
    }
}

fn inject_request(request: &InjectRequest) -> wit::Request {
    let seen = &request.workload;
    wit::Request {
        user: user(&request.user),
        server: request.server.clone(),
        options: option_entries(&request.options),
        workload: wit::Workload {
            kind: match seen.workload.kind {
                WorkloadKind::Deployment => wit::WorkloadKind::Deployment,
                WorkloadKind::StatefulSet => wit::WorkloadKind::StatefulSet,
                WorkloadKind::DaemonSet => wit::WorkloadKind::DaemonSet,
            },
            namespace: seen.workload.namespace.to_string(),
            name: seen.workload.name.to_string(),
            containers: seen
                .containers
                .iter()
                .map(|one| wit::Container { name: one.name.clone(), image: one.image.clone() })
                .collect(),
            volumes: seen
                .volumes
                .iter()
                .map(|one| wit::Volume { name: one.name.clone(), source: one.source.clone() })
                .collect(),
        },
    }
}

fn inject_verdict(verdict: wit::Verdict) -> InjectVerdict {
    match verdict {
        wit::Verdict::Allow(access) => InjectVerdict::Allow(WorkloadAccess {
            volumes: access.volumes.into_iter().map(volume).collect(),
            environment_of: access.environment_of,
        }),
        wit::Verdict::Deny(why) => InjectVerdict::Deny(readable(denial(why))),
    }
}

fn volume(asked: wit::VolumeAccess) -> VolumeAccess {
    let wit::VolumeAccess { volume, path, sub_path, read_only } = asked;
    VolumeAccess { volume, path, sub_path, read_only }
}
