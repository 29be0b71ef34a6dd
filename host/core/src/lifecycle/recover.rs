//! A lab found in the cluster after a restart.

use super::{Lab, Observation, Operation, OperationKind, Phase, SpawnStep, TimeLimits};
use crate::lifecycle::{DeleteStep, Failure};

impl Lab {
    /// The state of a lab that the cluster shows but this process did not start, as of `operation`, the last one
    /// recorded on the lab's objects. The driver feeds the observation itself afterwards.
    ///
    /// `completed` says that the operation is known to have ended well. A running lab runs on, or is reaped when its
    /// pod went meanwhile. A deletion goes on. A spawn whose pod exists is followed to its end. One that had not come to its pod is
    /// marked `Interrupted` and cleaned: what it would have created was known to the lost process only.
    pub fn recovered(
        operation: Operation,
        observation: &Observation,
        limits: TimeLimits,
        completed: bool,
    ) -> Self {
        let mut lab = Self::absent(limits);
        lab.operation = Some(operation);
        lab.pod = observation.pod;
        lab.rest = observation.rest;
        lab.phase = match operation.kind {
            OperationKind::Stop => Phase::Terminating(DeleteStep::Pod),
            OperationKind::Spawn if completed && lab.pod.is_missing() => Phase::Terminating(DeleteStep::Pod),
            OperationKind::Spawn if completed => Phase::Running,
            OperationKind::Spawn if !lab.pod.is_missing() => Phase::Starting(SpawnStep::Waiting),
            OperationKind::Spawn => Phase::Failed {
                failure: Failure::service(
                    "Interrupted",
                    "The service restarted while the lab was being created",
                ),
                cleanup: None,
            },
        };
        lab
    }
}
