//! Computes the state of a lab after a restart of the service from its record and the observed cluster.

use jiff::Timestamp;

use super::{Desired, SpawnSpec, SpawnStatus};
use crate::lifecycle::{
    Deletion, Failed, Failure, KeptNamespace, Lab, Observed, Operation, OperationKind, Phase, Restarts,
    Running, SpawnStep, Starting, TimeLimits,
};
use crate::names::lab::JobId;
use crate::names::spawn_key::SpawnKind;

/// The state of a lab after a restart.
#[derive(Debug, Clone)]
pub struct Recovered {
    /// The lab's state. The observed cluster is passed to it later, as an ordinary event.
    pub lab: Lab,
    /// Set if the restart interrupted the operation in the record. Its history has to be closed with this failure.
    pub interrupted: Option<Failure>,
}

/// Computes the state of a lab from its record.
///
/// If `desired` is `Stopped` or the record is being deleted, the lab is stopping. If the record has a `failure`, the
/// lab has failed. If it has `readyAt`, the lab was ready. Otherwise the lab was starting. If its pod exists, the spawn
/// continues. If not, the lab is decided again from the request in its Secret. A spawn whose record names no such request
/// fails as [`interrupted`], and its objects are deleted.
///
/// `deleted` is true if the record is being deleted. `observed` is the state of the cluster at the place in the record.
/// `pod_seen` is true if the lab's pod certainly exists. `usual` are the service's time limits. `fresh` is the id of an
/// operation that has to begin if the record has none.
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
    let lab = |phase, operation| {
        Lab::recovered(phase, operation, observed.clone(), limits, usual).of_kind(spec.kind)
    };
    if deleted || spec.desired == Desired::Stopped {
        let operation = match operation.kind {
            OperationKind::Stop | OperationKind::Cleanup => operation,
            OperationKind::Spawn => limits.operation(fresh, OperationKind::Stop, now),
        };
        let phase = stopping_phase(observed, limits, operation.started_at, now);
        return Recovered { lab: lab(phase, operation), interrupted: None };
    }
    if let Some(failure) = status.and_then(|status| status.failure.clone()) {
        let at = status.and_then(|status| status.finished_at).unwrap_or(operation.started_at);
        let phase = Phase::Failed(Failed { failure, at, operation: OperationKind::Spawn });
        return Recovered { lab: lab(phase, operation), interrupted: None };
    }
    if let Some((status, ready_at)) = status.and_then(|status| status.ready_at.map(|at| (status, at))) {
        let restarts = Restarts::recorded(status.restarts, status.pod_restarts);
        let phase = Phase::Running(Running { ready_at, pod_uid: status.pod_uid.clone(), restarts });
        return Recovered { lab: lab(phase, operation), interrupted: None };
    }
    let step = match (pod_seen, spec.operation.request) {
        (true, _) => Some(SpawnStep::Waiting),
        (false, Some(_)) => Some(SpawnStep::Deciding),
        (false, None) => None,
    };
    if let Some(step) = step.filter(|_| operation.kind == OperationKind::Spawn) {
        let phase = Phase::Starting(Starting { step, overdue: false });
        return Recovered { lab: lab(phase, operation), interrupted: None };
    }
    let failure = interrupted(spec.kind);
    let phase = Phase::Failed(Failed { failure: failure.clone(), at: now, operation: OperationKind::Spawn });
    Recovered { lab: lab(phase, operation), interrupted: Some(failure) }
}

/// Returns the phase of a stop that was begun at `since`, which begins again with its first step. The stop is complete for
/// its user when the pod is gone.
fn stopping_phase(observed: &Observed, limits: TimeLimits, since: Timestamp, now: Timestamp) -> Phase {
    let Operation { deadline, .. } = limits.operation(JobId::nil(), OperationKind::Stop, now);
    let deletion = Deletion { deadline, overdue: false };
    if observed.is_nothing() {
        match observed.kept_for.map(|time| since.checked_add(time).unwrap_or(Timestamp::MAX)) {
            Some(until) => Phase::NamespaceKept(KeptNamespace { until }),
            None => Phase::Absent,
        }
    } else if observed.pod.is_missing() {
        Phase::CleaningUp(deletion)
    } else {
        Phase::Stopping(deletion)
    }
}

/// The failure of a spawn that a restart of the service has interrupted. JupyterHub's spawner then requests it again.
pub fn interrupted(kind: SpawnKind) -> Failure {
    let message = format!("The service restarted while the {} was being created", kind.noun());
    Failure::service("Interrupted", message)
}
