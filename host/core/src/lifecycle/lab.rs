//! The state of one lab.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DeleteStep, Failure, PodPresence, Presence};
use crate::lab::JobId;
use crate::stage::Stage;

/// The state of one lab, owned by its driver.
#[derive(Debug, Clone)]
pub struct Lab {
    /// Where in its life the lab is.
    pub phase: Phase,
    /// The operation under way, or the last one.
    pub operation: Option<Operation>,
    /// What the cluster was last known to have.
    pub(super) pod: Presence,
    pub(super) rest: Presence,
    /// True from `Effect::Apply` until its answer: objects may appear at any moment.
    pub(super) applying: bool,
    /// The stage that pod and events showed last, with reason and message.
    pub(super) stage: Option<(Stage, String, String)>,
    pub(super) told: BTreeSet<(String, String)>,
    /// The service's time limits, and those of this lab: a policy may set others.
    pub(super) usual_limits: TimeLimits,
    pub(super) limits: TimeLimits,
}

/// Where in its life a lab is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// There is no lab.
    Absent,
    /// A spawn is under way.
    Starting(SpawnStep),
    /// The lab answers.
    Running,
    /// The lab is being deleted.
    Terminating(DeleteStep),
    /// The last operation failed; what it left is being cleaned while `cleanup` says where that is.
    Failed {
        /// Why.
        failure: Failure,
        /// The deletion of what is left, while it goes on.
        cleanup: Option<DeleteStep>,
    },
}

/// Where a spawn is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpawnStep {
    /// Deleting what an earlier lab left.
    Cleaning(DeleteStep),
    /// Asking the policies.
    Deciding,
    /// Creating objects.
    Creating,
    /// Waiting for the pod.
    Waiting,
}

/// An operation on a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Its id.
    pub job_id: JobId,
    /// What it does.
    pub kind: OperationKind,
    /// When it began.
    pub started_at: Timestamp,
    /// When it has taken too long.
    pub deadline: Timestamp,
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OperationKind {
    /// Starts a lab.
    Spawn,
    /// Stops it because someone asked.
    Stop,
    /// Removes what is left of a lab that ended by itself.
    Reap,
}

/// How long operations may take in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimits {
    /// A spawn.
    pub spawn: SignedDuration,
    /// A deletion.
    pub delete: SignedDuration,
}

/// A lab's status, in seed 000's words.
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
}

impl Lab {
    /// The state before anything happened.
    pub fn absent(limits: TimeLimits) -> Self {
        Self {
            phase: Phase::Absent,
            operation: None,
            pod: Presence::Missing,
            rest: Presence::Missing,
            applying: false,
            stage: None,
            told: BTreeSet::new(),
            usual_limits: limits,
            limits,
        }
    }

    /// The status, or nothing when there is no lab.
    pub fn status(&self) -> Option<LabStatus> {
        match self.phase {
            Phase::Absent => None,
            Phase::Starting(_) => Some(LabStatus::Starting),
            Phase::Running => Some(LabStatus::Running),
            Phase::Terminating(_) => Some(LabStatus::Terminating),
            Phase::Failed { .. } => Some(LabStatus::Failed),
        }
    }

    /// Whether the pod exists.
    pub fn pod_presence(&self) -> PodPresence {
        if self.pod.is_missing() { PodPresence::Missing } else { PodPresence::Present }
    }

    /// The stage last shown, with its reason and message.
    pub fn stage(&self) -> Option<(Stage, &str, &str)> {
        self.stage.as_ref().map(|(stage, reason, message)| (*stage, reason.as_str(), message.as_str()))
    }

    /// The failure, when the last operation failed.
    pub fn failure(&self) -> Option<&Failure> {
        match &self.phase {
            Phase::Failed { failure, .. } => Some(failure),
            _ => None,
        }
    }

    /// When [`super::Event::Tick`] is due, if something is under way.
    pub fn deadline(&self) -> Option<Timestamp> {
        let under_way = match &self.phase {
            Phase::Starting(_) | Phase::Terminating(_) => true,
            Phase::Failed { cleanup, .. } => cleanup.is_some(),
            Phase::Absent | Phase::Running => false,
        };
        self.operation.filter(|_| under_way).map(|operation| operation.deadline)
    }
}
