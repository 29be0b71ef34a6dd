use wasmspawner_core::users::quota::{Quota, Usage};

use super::super::bindings::hooks::quota as wit;

pub(in super::super) fn usage(usage: Usage) -> wit::Usage {
    wit::Usage { labs: usage.labs }
}

pub(in super::super) fn quota(quota: wit::Quota) -> Quota {
    Quota {
        cpu_millis: quota.cpu_millis,
        memory_bytes: quota.memory_bytes,
        storage_bytes: quota.storage_bytes,
        pods: quota.pods,
        labs: quota.labs,
        extended: quota.extended.into_iter().collect(),
    }
}
