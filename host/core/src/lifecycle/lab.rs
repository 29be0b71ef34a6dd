//! The state of one lab.

use std::collections::BTreeSet;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::operation::after;
use super::{
    Failure, InFlight, Observed, Operation, OperationKind, PodPresence, Presence, Restarts, TimeLimits,
};
use crate::lifecycle::stage::{Analysis, Stage};
use crate::names::spawn_key::SpawnKind;

/// The state of one lab, owned by its driver.
#[derive(Debug, Clone)]
pub struct Lab {
    /// The kind of the spawn: a lab, or a child of a lab. Besides the noun in messages, the kind matters only for labs
    /// in workloads.
    pub kind: SpawnKind,
    /// The phase of the lab's life.
    pub phase: Phase,
    /// The operation under way, or the last one.
    pub operation: Option<Operation>,
    /// The requests that have been made for this lab.
    pub in_flight: InFlight,
    /// The last known state of the cluster.
    pub(super) observed: Observed,
    /// The latest stage of this operation, with reason and message.
    pub(super) stage: Option<(Stage, String, String)>,
    /// The volume claim whose deletion the creation of the objects waits for, with what keeps it.
    pub(super) waits_for: Option<(String, Option<String>)>,
    /// Reasons and messages that were published in this operation, so that each is published only once.
    pub(super) published: BTreeSet<(String, String)>,
    /// The service's time limits; a policy may set others for this lab.
    pub(super) usual_limits: TimeLimits,
    pub(super) limits: TimeLimits,
}

/// The phase of a lab's life.
#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    /// There is no lab, and no object of an earlier one is left.
    Absent,
    /// There is no lab. Its namespace is empty, and kept for the next lab of the server.
    NamespaceKept(KeptNamespace),
    /// A spawn is under way.
    Starting(Starting),
    /// The lab answers.
    Running(Running),
    /// The lab is being stopped.
    Stopping(Deletion),
    /// The lab counts as stopped for its user, while its remaining objects are still being deleted.
    CleaningUp(Deletion),
    /// The last operation failed. The objects that it left are being deleted.
    Failed(Failed),
}

/// The empty namespace of a lab that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptNamespace {
    /// The time at which it is deleted, unless another lab of the server has started before.
    pub until: Timestamp,
}

/// A spawn under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Starting {
    /// The step of the spawn.
    pub step: SpawnStep,
    /// The time limit has passed. The cluster is read once more before the spawn fails.
    pub overdue: bool,
}

/// The steps of a spawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpawnStep {
    /// Waits until the objects of an earlier lab are gone.
    Cleaning,
    /// Waits for the policies.
    Deciding,
    /// Waits until the lab's claim has a target. The policies are then called again, because their answers may depend
    /// on the namespace.
    Binding,
    /// Creates the lab's objects.
    Creating,
    /// Waits for the pod to become ready.
    Waiting,
}

/// A running lab.
#[derive(Debug, Clone, PartialEq)]
pub struct Running {
    /// The time at which the lab became ready.
    pub ready_at: Timestamp,
    /// The pod that was ready.
    pub pod_uid: Option<String>,
    /// Restarts of the pod's containers.
    pub restarts: Restarts,
}

impl Running {
    /// Returns the number of container restarts since the lab became ready.
    pub fn restarts(&self) -> u32 {
        self.restarts.total()
    }
}

/// A deletion under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deletion {
    /// The end of the time limit, which is counted from the last progress.
    pub deadline: Timestamp,
    /// The time limit has passed. The cluster is read once more before the deletion fails.
    pub overdue: bool,
}

/// A lab whose last operation failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Failed {
    /// The failure.
    pub failure: Failure,
    /// The time of the failure.
    pub at: Timestamp,
    /// The operation that failed. A failed deletion ends as soon as no object is left.
    pub operation: OperationKind,
}

/// A lab's status, with the names of SQR-066.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LabStatus {
    /// The lab is being started.
    Starting,
    /// The lab answers.
    Running,
    /// The lab is being stopped.
    Terminating,
    /// The last operation failed.
    Failed,
}

impl LabStatus {
    /// All statuses.
    pub const ALL: [Self; 4] = [Self::Starting, Self::Running, Self::Terminating, Self::Failed];

    /// The status as it is written in the API and in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Terminating => "terminating",
            Self::Failed => "failed",
        }
    }
}

impl Lab {
    /// Creates a lab that does not exist.
    pub fn absent(limits: TimeLimits) -> Self {
        Self {
            kind: SpawnKind::Lab,
            phase: Phase::Absent,
            operation: None,
            in_flight: InFlight::default(),
            observed: Observed::nothing(),
            stage: None,
            waits_for: None,
            published: BTreeSet::new(),
            usual_limits: limits,
            limits,
        }
    }

    /// Changes the kind of the spawn.
    #[must_use]
    pub fn of_kind(self, kind: SpawnKind) -> Self {
        Self { kind, ..self }
    }

    /// Returns the noun for the lab in messages.
    pub(super) fn noun(&self) -> &'static str {
        self.kind.noun()
    }

    /// Creates the state of a lab after a restart of the service; see [`crate::record::recover`].
    pub fn recovered(
        phase: Phase,
        operation: Operation,
        observed: Observed,
        limits: TimeLimits,
        usual: TimeLimits,
    ) -> Self {
        let Analysis { stage, reason, message, .. } = &observed.analysis;
        let stage = Some((*stage, reason.clone(), message.clone()));
        Self { phase, operation: Some(operation), observed, stage, limits, ..Self::absent(usual) }
    }

    /// The status, or `None` when there is no lab.
    pub fn status(&self) -> Option<LabStatus> {
        match self.phase {
            Phase::Absent | Phase::NamespaceKept(_) | Phase::CleaningUp(_) => None,
            Phase::Starting(_) => Some(LabStatus::Starting),
            Phase::Running(_) => Some(LabStatus::Running),
            Phase::Stopping(_) => Some(LabStatus::Terminating),
            Phase::Failed(_) => Some(LabStatus::Failed),
        }
    }

    /// Returns the presence of the lab's pod.
    pub fn pod_presence(&self) -> PodPresence {
        if self.observed.pod.is_missing() { PodPresence::Missing } else { PodPresence::Present }
    }

    /// The latest stage, with its reason and message.
    pub fn stage(&self) -> Option<(Stage, &str, &str)> {
        self.stage.as_ref().map(|(stage, reason, message)| (*stage, reason.as_str(), message.as_str()))
    }

    /// The failure, if the last operation failed.
    pub fn failure(&self) -> Option<&Failure> {
        match &self.phase {
            Phase::Failed(failed) => Some(&failed.failure),
            _ => None,
        }
    }

    /// The time limits of operations on this lab.
    pub fn limits(&self) -> TimeLimits {
        self.limits
    }

    /// Returns the end of the time limit of the operation under way, or of the time for which a namespace is kept.
    pub fn deadline(&self) -> Option<Timestamp> {
        match &self.phase {
            Phase::Starting(Starting { overdue: false, .. }) => {
                self.operation.map(|operation| operation.deadline)
            }
            Phase::Stopping(Deletion { deadline, overdue: false }) => Some(*deadline),
            Phase::NamespaceKept(KeptNamespace { until }) => Some(*until),
            _ => None,
        }
    }

    /// Returns true when the time limit has passed and the cluster has to be read before the operation fails.
    pub(super) fn is_overdue(&self) -> bool {
        match &self.phase {
            Phase::Starting(starting) => starting.overdue,
            Phase::Stopping(deletion) => deletion.overdue,
            _ => false,
        }
    }

    /// Returns true when no operation is under way and nothing is left in the cluster.
    pub fn is_settled(&self) -> bool {
        matches!(self.phase, Phase::Absent | Phase::Failed(_)) && self.observed.is_nothing()
    }

    /// Notes that an earlier lab has left objects at another place, its namespace perhaps, before a spawn begins.
    pub fn leaves_objects(&mut self) {
        (self.observed.rest, self.observed.kept_for) = (Presence::Present, None);
    }

    /// True if no object is left except a namespace that is kept.
    pub fn keeps_namespace(&self) -> bool {
        self.observed.kept_for.is_some()
    }

    /// Returns the phase of a lab of which no object is left except perhaps a namespace that may be kept.
    pub(super) fn ended(&self, now: Timestamp) -> Phase {
        match self.observed.kept_for {
            Some(time) => Phase::NamespaceKept(KeptNamespace { until: after(now, time) }),
            None => Phase::Absent,
        }
    }

    /// Creates the state of a deletion that begins, or makes progress, at `now`.
    pub(super) fn deletion(&self, now: Timestamp) -> Deletion {
        Deletion { deadline: after(now, self.limits.delete), overdue: false }
    }
}
