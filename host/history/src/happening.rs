//! The happenings of an operation, for other programs.

use wasmspawner_core::lifecycle::progress::LoggedEntry;
use wasmspawner_core::record::operation_record::NotedFinding;

/// A happening in an operation.
#[derive(Debug, Clone)]
pub(super) enum Happening {
    /// The operation began.
    Begun,
    /// An entry was added to its log.
    Logged(LoggedEntry),
    /// The cluster has reported something new.
    Reported(NotedFinding),
    /// The operation ended.
    Ended,
}
