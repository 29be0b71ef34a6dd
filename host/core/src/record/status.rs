//! `status` of a record: the present state.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::custom_resource::condition::Condition;
use crate::lifecycle::stage::Stage;
use crate::lifecycle::{Failure, Lab, LabStatus, Phase};
use crate::values::word::word_or;

/// The present state of a spawn. It is written when the spawn is accepted, ready, stopped or failed, and not in
/// between.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpawnStatus {
    /// The status of the lab.
    #[serde(deserialize_with = "status_or_starting")]
    pub status: LabStatus,
    /// The stage that belongs to that status.
    #[serde(deserialize_with = "stage_or_scheduling")]
    pub stage: Stage,
    /// The reason for programs; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The reason in words; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Progress of the operation in percent, 0 to 100.
    #[serde(default)]
    pub progress: u8,
    /// When the lab became ready, RFC 3339; absent if it never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub ready_at: Option<Timestamp>,
    /// When the lab failed, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub finished_at: Option<Timestamp>,
    /// Why the lab failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The uid of the pod that was ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
    /// How often a container of the pod was restarted since the lab became ready.
    #[serde(default)]
    pub restarts: u32,
    /// How often the kubelet has restarted a container of the pod, also before the lab was ready. With it, the service notices
    /// restarts that happened while it was away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_restarts: Option<u32>,
    /// The condition `Ready`, for `kubectl wait`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

fn status_or_starting<'de, D: Deserializer<'de>>(deserializer: D) -> Result<LabStatus, D::Error> {
    word_or(deserializer, LabStatus::Starting)
}

fn stage_or_scheduling<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Stage, D::Error> {
    word_or(deserializer, Stage::Scheduling)
}

impl SpawnStatus {
    /// Returns the status of `lab` that its record should have. The status does not change while a lab only moves from
    /// stage to stage.
    pub fn from_lab(lab: &Lab) -> Self {
        let since = lab.operation.map_or(Timestamp::UNIX_EPOCH, |operation| operation.started_at);
        match &lab.phase {
            Phase::Starting(_) => Self::new(LabStatus::Starting, Stage::Scheduling, 0, "Starting", since),
            Phase::Running(running) => Self {
                ready_at: Some(running.ready_at),
                pod_uid: running.pod_uid.clone(),
                restarts: running.restarts(),
                pod_restarts: running.restarts.of_pod(),
                ..Self::new(LabStatus::Running, Stage::Running, 100, "Ready", running.ready_at)
            },
            Phase::NamespaceKept(_) => {
                Self::new(LabStatus::Terminating, Stage::Stopped, 100, "NamespaceKept", since)
            }
            Phase::Stopping(_) | Phase::CleaningUp(_) | Phase::Absent => {
                Self::new(LabStatus::Terminating, Stage::Terminating, 0, "Stopping", since)
            }
            Phase::Failed(failed) => {
                let failure = &failed.failure;
                let mut status = Self::new(LabStatus::Failed, Stage::Failed, 100, &failure.reason, failed.at);
                status.conditions.iter_mut().for_each(|ready| ready.message.clone_from(&failure.message));
                Self {
                    reason: Some(failure.reason.clone()),
                    message: Some(failure.message.clone()),
                    finished_at: Some(failed.at),
                    failure: Some(failure.clone()),
                    ..status
                }
            }
        }
    }

    fn new(status: LabStatus, stage: Stage, progress: u8, reason: &str, since: Timestamp) -> Self {
        let ready = if status == LabStatus::Running { "True" } else { "False" };
        let condition = Condition {
            kind: "Ready".to_owned(),
            status: ready.to_owned(),
            reason: reason.to_owned(),
            message: String::new(),
            last_transition_time: since,
        };
        Self {
            status,
            stage,
            reason: None,
            message: None,
            progress,
            ready_at: None,
            finished_at: None,
            failure: None,
            pod_uid: None,
            restarts: 0,
            pod_restarts: None,
            conditions: vec![condition],
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::lifecycle::Blame;

    #[test]
    fn a_word_of_a_later_version_does_not_make_a_status_unreadable() {
        let failure = json!({ "reason": "Evicted", "message": "The node is gone", "blame": "weather" });
        let later = json!({
            "status": "hibernating", "stage": "Dreaming", "failure": failure, "restarts": 2, "conditions": [],
        });
        let read: SpawnStatus = serde_json::from_value(later).unwrap();
        assert_eq!((read.status, read.stage, read.restarts), (LabStatus::Starting, Stage::Scheduling, 2));
        assert_eq!(read.failure.unwrap().blame, Blame::Service);
        let present = json!({ "status": "failed", "stage": "Failed", "conditions": [] });
        let read: SpawnStatus = serde_json::from_value(present).unwrap();
        assert_eq!((read.status, read.stage), (LabStatus::Failed, Stage::Failed));
    }
}
