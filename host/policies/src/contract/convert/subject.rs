use wasmspawner_core::names::spawn_key::ChildKind;
use wasmspawner_core::policy::usage::PastUse;
use wasmspawner_core::policy::{PresentUse, SubjectBlueprint, SubjectChild};

use crate::contract::bindings::host;

pub(in crate::contract) fn child(child: &SubjectChild) -> host::ChildOfLab {
    let SubjectChild { kind, name, workers } = child;
    let kind = match kind {
        ChildKind::Kernel => host::ChildKind::Kernel,
        ChildKind::DaskPool => host::ChildKind::DaskPool,
    };
    host::ChildOfLab { kind, name: name.clone(), workers: *workers }
}

pub(in crate::contract) fn blueprint(blueprint: &SubjectBlueprint) -> host::LabBlueprint {
    let SubjectBlueprint { chosen, consists_of, spec } = blueprint.clone();
    host::LabBlueprint { chosen, consists_of, spec }
}

pub(in crate::contract) fn present_use(present: PresentUse) -> host::UseOfUser {
    let PresentUse { labs, kernels, dask_pools, dask_workers, cpu_millis, memory_bytes } = present;
    host::UseOfUser { labs, kernels, dask_pools, dask_workers, cpu_millis, memory_bytes }
}

pub(in crate::contract) fn past_use(past: PastUse) -> host::UseOfDays {
    let PastUse { lab_seconds, kernel_seconds, dask_worker_seconds, cpu_seconds, memory_gib_seconds } = past;
    host::UseOfDays { lab_seconds, kernel_seconds, dask_worker_seconds, cpu_seconds, memory_gib_seconds }
}
