//! What version 0.1.0 has in another way than later versions.

use wasmspawner_core::past_use::PastUse;
use wasmspawner_core::policy::Denial;

use super::bindings::host;

/// A denial is a message only.
pub(super) fn denial(message: String) -> Denial {
    message.into()
}

/// Only labs are counted by themselves.
pub(super) fn past_use(past: PastUse) -> host::UseOfDays {
    let PastUse { lab_seconds, cpu_seconds, memory_gib_seconds, kernel_seconds: _, dask_worker_seconds: _ } =
        past;
    host::UseOfDays { lab_seconds, cpu_seconds, memory_gib_seconds }
}
