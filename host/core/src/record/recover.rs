//! What a lab is after a restart of the service: a pure function of its record and of what the cluster shows.

use jiff::Timestamp;

use super::{Desired, SpawnSpec, SpawnStatus};
use crate::lab::JobId;
use crate::lifecycle::{
    Deletion, Failed, Failure, Lab, Observed, Operation, OperationKind, Phase, Restarts, Running, SpawnStep,
    Starting, TimeLimits,
};

/// A lab as a restart finds it.
#[derive(Debug, Clone)]
pub struct Recovered {
    /// Its state. What is observed is fed to it as an event afterwards, as always.
    pub lab: Lab,
    /// The operation that the record tells of was cut off, and its history has to be closed with this.
    pub interrupted: Option<Failure>,
}

/// The state of a lab of which there is a record.
///
/// Nothing is guessed: `desired` and a deletion of the record say that it was to stop, `readyAt` says whether it was
/// ever ready, `failure` says that it failed. What is left is a spawn in its middle: it is followed to its end when its
/// pod exists. Before that it cannot go on, because the environment that it was to get went with the process: it is
/// cleaned and ends `Interrupted`.
///
/// `deleted` says whether the record is being deleted, `observed` what the cluster shows at the place that the record
/// names, `pod_seen` whether the lab's pod is really there and not only possibly. `usual` are the service's time limits; `fresh` names the operation that begins when there was none for it.
#[expect(clippy::too_many_arguments, reason = "each is a separate fact, and there is one caller")]
pub fn recover(
    spec: &SpawnSpec,
    status: Option<&SpawnStatus>,
    deleted: bool,
    observed: &Observed,
    pod_seen: bool,
    usual: TimeLimits,
    fresh: JobId,
    now: Timestamp,
) -> Recovered {
    let limits = TimeLimits::from(spec.time_limits);
    let operation = spec.operation.operation();
    let lab = |phase, operation| Lab::recovered(phase, operation, observed.clone(), limits, usual);
    if deleted || spec.desired == Desired::Stopped {
        let operation = match operation.kind {
            OperationKind::Stop | OperationKind::Cleanup => operation,
            OperationKind::Spawn => limits.operation(fresh, OperationKind::Stop, now),
        };
        return Recovered { lab: lab(going(observed, limits, now), operation), interrupted: None };
    }
    if let Some(failure) = status.and_then(|status| status.failure.clone()) {
        let at = status.and_then(|status| status.finished_at).unwrap_or(operation.started_at);
        let phase = Phase::Failed(Failed { failure, at, operation: OperationKind::Spawn });
        return Recovered { lab: lab(phase, operation), interrupted: None };
    }
    if let Some((status, ready_at)) = status.and_then(|status| status.ready_at.map(|at| (status, at))) {
        let restarts = Restarts::recorded(status.restarts);
        let phase = Phase::Running(Running { ready_at, pod_uid: status.pod_uid.clone(), restarts });
        return Recovered { lab: lab(phase, operation), interrupted: None };
    }
    if operation.kind == OperationKind::Spawn && pod_seen {
        let phase = Phase::Starting(Starting { step: SpawnStep::Waiting, overdue: false });
        return Recovered { lab: lab(phase, operation), interrupted: None };
    }
    let failure = interrupted();
    let phase = Phase::Failed(Failed { failure: failure.clone(), at: now, operation: OperationKind::Spawn });
    Recovered { lab: lab(phase, operation), interrupted: Some(failure) }
}

/// A stop begins again at its first step; it is over for its user when the pod is gone.
fn going(observed: &Observed, limits: TimeLimits, now: Timestamp) -> Phase {
    let Operation { deadline, .. } = limits.operation(JobId::nil(), OperationKind::Stop, now);
    let deletion = Deletion { deadline, overdue: false };
    if observed.is_nothing() {
        Phase::Absent
    } else if observed.pod.is_missing() {
        Phase::Leaving(deletion)
    } else {
        Phase::Stopping(deletion)
    }
}

fn interrupted() -> Failure {
    Failure::service("Interrupted", "The service restarted while the lab was being created")
}
