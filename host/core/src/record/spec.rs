//! `spec` of a record: what is wanted.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{LabDescription, Place, SpawnKey, SpawnKind};
use crate::lab::{JobId, LabKey};
use crate::lifecycle::{Operation, OperationKind, TimeLimits};
use crate::names::{ObjectName, ServerName, Username};

/// Several parts of the service keep the same description of a lab: it is shared, and there once.
fn shared<S: Serializer>(lab: &Arc<LabDescription>, serializer: S) -> Result<S::Ok, S::Error> {
    lab.as_ref().serialize(serializer)
}

fn to_share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<LabDescription>, D::Error> {
    LabDescription::deserialize(deserializer).map(Arc::new)
}

/// What is wanted of a spawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpawnSpec {
    /// What was spawned.
    pub kind: SpawnKind,
    /// Whose it is: the raw username.
    pub user: Username,
    /// A lab's server name, which is empty for the default server; a kernel's or pool's own name.
    #[serde(default)]
    pub name: ServerName,
    /// The record of the lab that it belongs to; absent for a lab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ObjectName>,
    /// Whether it is to run. `Stopped` once a stop was accepted.
    pub desired: Desired,
    /// The operation under way, or the last one.
    pub operation: OperationSpec,
    /// Where it is.
    pub place: Place,
    /// Places where an earlier lab of the same name left something that has to go first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remains: Vec<Place>,
    /// How long its operations may take.
    pub time_limits: TimeLimitsSpec,
    /// What it was started with.
    #[serde(default)]
    #[serde(serialize_with = "shared", deserialize_with = "to_share")]
    #[schemars(with = "LabDescription")]
    pub lab: Arc<LabDescription>,
}

/// Whether a spawn is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Desired {
    /// It is to run.
    Running,
    /// It is to go, with everything that belongs to it.
    Stopped,
}

/// An operation as it is written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationSpec {
    /// Its id, which is the first part of its events' ids.
    pub id: JobId,
    /// What it does.
    pub kind: OperationKind,
    /// Who asked for it; absent when nobody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
    /// When it began, RFC 3339.
    #[schemars(with = "String")]
    pub started_at: Timestamp,
    /// When it has taken too long, RFC 3339.
    #[schemars(with = "String")]
    pub deadline: Timestamp,
}

/// How long operations may take, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimeLimitsSpec {
    /// A spawn.
    pub spawn_seconds: u64,
    /// A deletion, counted from its last progress.
    pub delete_seconds: u64,
}

impl SpawnSpec {
    /// Which spawn it is.
    pub fn key(&self) -> SpawnKey {
        SpawnKey {
            kind: self.kind,
            user: self.user.clone(),
            name: self.name.clone(),
            parent: self.parent.clone(),
        }
    }

    /// Which lab it is; nothing for a child of a lab.
    pub fn lab_key(&self) -> Option<LabKey> {
        (self.kind == SpawnKind::Lab).then(|| LabKey::new(self.user.clone(), self.name.clone()))
    }
}

impl OperationSpec {
    /// An operation, and who asked for it.
    pub fn of(operation: &Operation, requested_by: Option<String>) -> Self {
        let Operation { job_id, kind, started_at, deadline } = *operation;
        Self { id: job_id, kind, requested_by, started_at, deadline }
    }

    /// The operation.
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
