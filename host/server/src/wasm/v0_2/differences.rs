//! What version 0.2.0 has in another way than earlier versions.

use wasmspawner_core::past_use::PastUse;
use wasmspawner_core::policy::Denial;

use super::bindings::{host, types};

pub(super) fn denial(denial: types::Denial) -> Denial {
    let types::Denial { message, rule } = denial;
    Denial { message, rule }
}

pub(super) fn past_use(past: PastUse) -> host::UseOfDays {
    let PastUse { lab_seconds, kernel_seconds, dask_worker_seconds, cpu_seconds, memory_gib_seconds } = past;
    host::UseOfDays { lab_seconds, kernel_seconds, dask_worker_seconds, cpu_seconds, memory_gib_seconds }
}
