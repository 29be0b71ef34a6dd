use wasmspawner_core::policy::{InjectRequest, InjectVerdict, VolumeAccess, WorkloadAccess};
use wasmspawner_core::workload::WorkloadKind;

use super::super::bindings::hooks::inject as wit;
use super::user::{denial, option_entries, user};
use crate::errors::readable;

pub(in super::super) fn inject_request(request: &InjectRequest) -> wit::Request {
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

pub(in super::super) fn inject_verdict(verdict: wit::Verdict) -> InjectVerdict {
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
