//! A lab found in the cluster after a restart.

use super::{
    DeleteStep, Failure, Lab, Observation, Operation, OperationKind, Outcome, Phase, SpawnStep, TimeLimits,
};

impl Lab {
    /// The state of a lab that the cluster shows but this process did not start, as of `operation`, the last one
    /// recorded. The driver feeds the observation itself afterwards.
    ///
    /// `ended` is how the operation is known to have ended. A running lab runs on, and is reaped as usual when its pod
    /// went meanwhile; a failed one stays failed; a deletion goes on. A spawn whose pod exists is followed to its end. One
    /// that had not come to its pod is marked `Interrupted` and cleaned: what it would have created was known to the
    /// lost process only.
    pub fn recovered(
        operation: Operation,
        observation: &Observation,
        limits: TimeLimits,
        ended: Option<&Outcome>,
    ) -> Self {
        let mut lab = Self::absent(limits);
        lab.operation = Some(operation);
        lab.pod = observation.pod;
        lab.rest = observation.rest;
        lab.phase = match (operation.kind, ended) {
            (_, Some(Outcome::Failed(failure))) => Phase::Failed { failure: failure.clone(), cleanup: None },
            (OperationKind::Stop | OperationKind::Reap, _) => Phase::Terminating(DeleteStep::Pod),
            (OperationKind::Spawn, Some(_)) => Phase::Running,
            (OperationKind::Spawn, None) if !lab.pod.is_missing() => Phase::Starting(SpawnStep::Waiting),
            (OperationKind::Spawn, None) => Phase::Failed { failure: interrupted(), cleanup: None },
        };
        lab
    }
}

fn interrupted() -> Failure {
    Failure::service("Interrupted", "The service restarted while the lab was being created")
}
