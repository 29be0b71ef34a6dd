use wasmspawner_core::quota::{Quota, Usage};

use crate::wasm::v0_1::bindings::hooks::quota as wit;

pub(in crate::wasm::v0_1) fn usage(usage: Usage) -> wit::Usage {
    wit::Usage { labs: usage.labs }
}

pub(in crate::wasm::v0_1) fn quota(quota: wit::Quota) -> Quota {
    Quota {
        cpu_millis: quota.cpu_millis,
        memory_bytes: quota.memory_bytes,
        storage_bytes: quota.storage_bytes,
        pods: quota.pods,
        labs: quota.labs,
        extended: quota.extended.into_iter().collect(),
    }
}
