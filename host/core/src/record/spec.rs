//! `spec` of a record: the desired state.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{LabDescription, Place};
use crate::lifecycle::{Operation, OperationKind, TimeLimits};
use crate::names::lab::{JobId, LabKey};
use crate::names::spawn_key::{ChildKey, ChildKind, SpawnKey, SpawnKind};
use crate::names::{ChildName, ObjectName, ServerName, Username};
use crate::values::digest::Digest;

/// Serializes a shared description of a lab. It is shared because several parts of the service hold the same one.
fn shared<S: Serializer>(lab: &Arc<LabDescription>, serializer: S) -> Result<S::Ok, S::Error> {
    lab.as_ref().serialize(serializer)
}

fn to_share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<LabDescription>, D::Error> {
    LabDescription::deserialize(deserializer).map(Arc::new)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(epoch: &u64) -> bool {
    *epoch == 0
}

/// The desired state of a spawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpawnSpec {
    /// The kind of the spawn. `Injected` is a lab in the pods of the workload that `place` names.
    pub kind: SpawnKind,
    /// The raw username of the spawn's user.
    pub user: Username,
    /// For a lab, the server name, which is empty for the default server. For a kernel or pool, its own name.
    #[serde(default)]
    pub name: ServerName,
    /// For a kernel or pool, the server name of its lab; absent for a lab, and for the default server.
    #[serde(default, skip_serializing_if = "ServerName::is_default")]
    pub server: ServerName,
    /// For a kernel or pool, the name of the record of its lab; absent for a lab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ObjectName>,
    /// Whether the spawn is to run. `Stopped` once a stop was accepted.
    pub desired: Desired,
    /// The number of the leadership in which the service wrote this; each is greater than those before. 0 without a Lease.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(max = 2_147_483_646))]
    pub epoch: u64,
    /// The operation under way, or the last one.
    pub operation: OperationSpec,
    /// The place of the spawn in the cluster.
    pub place: Place,
    /// Places where an earlier lab of the same name left objects that have to be deleted first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remains: Vec<Place>,
    /// The namespace that was made for the lab itself; absent until the lab is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_namespace: Option<OwnNamespace>,
    /// The time limits of the spawn's operations.
    pub time_limits: TimeLimitsSpec,
    /// The description of the lab.
    #[serde(default)]
    #[serde(serialize_with = "shared", deserialize_with = "to_share")]
    #[schemars(with = "LabDescription")]
    pub lab: Arc<LabDescription>,
}

/// Whether a spawn is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Desired {
    /// The spawn is to run.
    Running,
    /// The spawn is to be deleted with all its objects.
    Stopped,
}

/// The namespace that was made for a lab, and is kept for the next lab of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnNamespace {
    /// Its uid, which differs from that of another namespace of the same name.
    pub uid: String,
    /// True if it is to be deleted. Nothing is created in it any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
}

/// An operation as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationSpec {
    /// The operation's id, which is the first part of the ids of its events.
    pub id: JobId,
    /// What the operation does.
    pub kind: OperationKind,
    /// Name of the caller who requested it; absent if the service began it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
    /// When it began, RFC 3339.
    #[schemars(with = "String")]
    pub started_at: Timestamp,
    /// When the time limit of the operation ends, RFC 3339.
    #[schemars(with = "String")]
    pub deadline: Timestamp,
    /// For the spawn of a lab, the digest of the request in the lab's Secret with the operation's id: `sha256:` and 64
    /// hexadecimal digits. With that request, a spawn goes on after a restart of the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub request: Option<Digest>,
}

/// The time limits of operations, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimeLimitsSpec {
    /// Limit of a whole spawn.
    pub spawn_seconds: u64,
    /// Limit of a deletion, counted from its last progress.
    pub delete_seconds: u64,
}

impl SpawnSpec {
    /// Returns the key of the spawn; `None` if the name of a child is not valid, which is only possible in a record
    /// that the service did not write.
    pub fn key(&self) -> Option<SpawnKey> {
        let kind = match self.kind {
            SpawnKind::Lab | SpawnKind::Injected => {
                return Some(LabKey::new(self.user.clone(), self.name.clone()).into());
            }
            SpawnKind::Kernel => ChildKind::Kernel,
            SpawnKind::DaskPool => ChildKind::DaskPool,
        };
        let name = ChildName::parse(self.name.as_str()).ok()?;
        let lab = LabKey::new(self.user.clone(), self.server.clone());
        Some(SpawnKey { lab, child: Some(ChildKey { kind, name }) })
    }
}

impl OperationSpec {
    /// Creates the record of an operation and of the caller who requested it.
    pub fn from_operation(operation: &Operation, requested_by: Option<String>) -> Self {
        let Operation { job_id, kind, started_at, deadline } = *operation;
        Self { id: job_id, kind, requested_by, started_at, deadline, request: None }
    }

    /// Returns the operation.
    pub fn operation(&self) -> Operation {
        Operation { job_id: self.id, kind: self.kind, started_at: self.started_at, deadline: self.deadline }
    }
}

impl From<TimeLimits> for TimeLimitsSpec {
    fn from(limits: TimeLimits) -> Self {
        let seconds = |span: SignedDuration| u64::try_from(span.as_secs()).unwrap_or_default();
        Self { spawn_seconds: seconds(limits.spawn), delete_seconds: seconds(limits.delete) }
    }
}

impl From<TimeLimitsSpec> for TimeLimits {
    fn from(limits: TimeLimitsSpec) -> Self {
        let span = |seconds: u64| SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
        Self { spawn: span(limits.spawn_seconds), delete: span(limits.delete_seconds) }
    }
}
