//! The answers of drivers, and the time that a caller waits for one.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::errors::SpawnError;
use wasmspawner_kubernetes::records;

/// The delay after its deadline with which an answer of a driver may still arrive.
const ANSWER_GRACE: Duration = Duration::from_secs(1);

/// The deadline for answering a request that arrives now. It does not depend on the number of requests: no request
/// waits longer than the time for which a write of the record is tried.
pub(crate) fn answer_by() -> Instant {
    Instant::now() + records::TRY_FOR
}

/// Waits for a driver's answer. A driver that is busy will refuse the request when it gets to it after `until`, so the
/// caller need not wait longer.
pub(crate) async fn answered(
    answer: oneshot::Receiver<Result<(), SpawnError>>,
    until: Instant,
) -> Result<(), SpawnError> {
    match tokio::time::timeout_at(until + ANSWER_GRACE, answer).await {
        Ok(answer) => answer.unwrap_or(Err(SpawnError::NotReady)),
        Err(_) => Err(SpawnError::NoTime),
    }
}
