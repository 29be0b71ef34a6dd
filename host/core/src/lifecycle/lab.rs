//! The state of one lab.

use std::collections::BTreeSet;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::operation::after;
use super::{Failure, InFlight, Observed, Operation, OperationKind, PodPresence, Restarts, TimeLimits};
use crate::stage::{Analysis, Stage};

/// The state of one lab, owned by its driver.
#[derive(Debug, Clone)]
pub struct Lab {
    /// Where in its life the lab is.
    pub phase: Phase,
    /// The operation under way, or the last one.
    pub operation: Option<Operation>,
    /// What is asked already.
    pub in_flight: InFlight,
    /// What the cluster was last known to have.
    pub(super) observed: Observed,
    /// The stage that pod and events showed last in this operation, with reason and message.
    pub(super) stage: Option<(Stage, String, String)>,
    /// What was said in this operation, so that it is said once.
    pub(super) told: BTreeSet<(String, String)>,
    /// The service's time limits, and those of this lab: a policy may set others.
    pub(super) usual_limits: TimeLimits,
    pub(super) limits: TimeLimits,
}

/// Where in its life a lab is.
#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    /// There is no lab, and nothing is left of one.
    Absent,
    /// A spawn is under way.
    Starting(Starting),
    /// The lab answers.
    Running(Running),
    /// The lab is being stopped.
    Stopping(Deletion),
    /// The lab is stopped as far as its user is concerned; what belonged to it is still going.
    Leaving(Deletion),
    /// The last operation failed. What it left is cleaned.
    Failed(Failed),
}

/// A spawn under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Starting {
    /// Where it is.
    pub step: SpawnStep,
    /// Its time is up. The cluster is read once more before that is believed.
    pub overdue: bool,
}

/// Where a spawn is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpawnStep {
    /// Waiting until nothing is left of an earlier lab.
    Cleaning,
    /// Asking the policies.
    Deciding,
    /// Creating objects.
    Creating,
    /// Waiting for the pod.
    Waiting,
}

/// A lab that answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Running {
    /// When it became ready.
    pub ready_at: Timestamp,
    /// The pod that was ready.
    pub pod_uid: Option<String>,
    /// What is known of its containers' restarts.
    pub restarts: Restarts,
}

impl Running {
    /// How often a container was restarted since the lab became ready.
    pub fn restarts(&self) -> u32 {
        self.restarts.total()
    }
}

/// A deletion under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deletion {
    /// When it has taken too long, counted from its last progress.
    pub deadline: Timestamp,
    /// Its time is up. The cluster is read once more before that is believed.
    pub overdue: bool,
}

/// A lab whose last operation failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Failed {
    /// Why.
    pub failure: Failure,
    /// When.
    pub at: Timestamp,
    /// What failed. A failed deletion is over as soon as nothing is left.
    pub operation: OperationKind,
}

/// A lab's status, in the words of SQR-066.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LabStatus {
    /// On its way up.
    Starting,
    /// It answers.
    Running,
    /// On its way down.
    Terminating,
    /// The last operation failed.
    Failed,
}

impl LabStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Starting, Self::Running, Self::Terminating, Self::Failed];

    /// The status as it is written everywhere.
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
    /// The state before anything happened.
    pub fn absent(limits: TimeLimits) -> Self {
        Self {
            phase: Phase::Absent,
            operation: None,
            in_flight: InFlight::default(),
            observed: Observed::nothing(),
            stage: None,
            told: BTreeSet::new(),
            usual_limits: limits,
            limits,
        }
    }

    /// The state of a lab that a restart found: see [`crate::record::recover`].
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

    /// The status, or nothing when there is no lab.
    pub fn status(&self) -> Option<LabStatus> {
        match self.phase {
            Phase::Absent | Phase::Leaving(_) => None,
            Phase::Starting(_) => Some(LabStatus::Starting),
            Phase::Running(_) => Some(LabStatus::Running),
            Phase::Stopping(_) => Some(LabStatus::Terminating),
            Phase::Failed(_) => Some(LabStatus::Failed),
        }
    }

    /// Whether the pod exists.
    pub fn pod_presence(&self) -> PodPresence {
        if self.observed.pod.is_missing() { PodPresence::Missing } else { PodPresence::Present }
    }

    /// The stage last shown, with its reason and message.
    pub fn stage(&self) -> Option<(Stage, &str, &str)> {
        self.stage.as_ref().map(|(stage, reason, message)| (*stage, reason.as_str(), message.as_str()))
    }

    /// The failure, when the last operation failed.
    pub fn failure(&self) -> Option<&Failure> {
        match &self.phase {
            Phase::Failed(failed) => Some(&failed.failure),
            _ => None,
        }
    }

    /// How long operations on this lab may take.
    pub fn limits(&self) -> TimeLimits {
        self.limits
    }

    /// When the operation under way has taken too long.
    pub fn deadline(&self) -> Option<Timestamp> {
        match &self.phase {
            Phase::Starting(Starting { overdue: false, .. }) => {
                self.operation.map(|operation| operation.deadline)
            }
            Phase::Stopping(Deletion { deadline, overdue: false }) => Some(*deadline),
            _ => None,
        }
    }

    /// True when time is up and the cluster has to be read before that is believed.
    pub(super) fn is_overdue(&self) -> bool {
        match &self.phase {
            Phase::Starting(starting) => starting.overdue,
            Phase::Stopping(deletion) => deletion.overdue,
            _ => false,
        }
    }

    /// True when no operation is under way and nothing is left in the cluster.
    pub fn is_settled(&self) -> bool {
        matches!(self.phase, Phase::Absent | Phase::Failed(_)) && self.observed.is_nothing()
    }

    /// A deletion that begins, or makes progress, at `now`.
    pub(super) fn deletion(&self, now: Timestamp) -> Deletion {
        Deletion { deadline: after(now, self.limits.delete), overdue: false }
    }
}
