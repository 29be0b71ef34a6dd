//! A lab as the API shows it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use wasmspawner_core::identity::Group;
use wasmspawner_core::lab::{JobId, LabKey};
use wasmspawner_core::lifecycle::{LabStatus, PodPresence};
use wasmspawner_core::policy::{Image, Options};
use wasmspawner_core::stage::Stage;

/// A lab at one moment. Credentials in `env` are already redacted.
#[derive(Debug, Clone, PartialEq)]
pub struct LabSnapshot {
    /// Which lab.
    pub key: LabKey,
    /// Where in its life it is.
    pub status: LabStatus,
    /// Whether its pod exists.
    pub pod: PodPresence,
    /// What it was started with.
    pub about: Arc<About>,
    /// Where the Hub reaches it, once it has an address.
    pub url: Option<String>,
    /// The pod's stage.
    pub stage: Option<Stage>,
    /// Why, for programs.
    pub reason: Option<String>,
    /// Why, for people.
    pub message: Option<String>,
    /// How far the operation is, 0 to 100.
    pub progress: u8,
    /// The operation under way, or the last one.
    pub job_id: Option<JobId>,
}

/// What a lab was started with: kept on its objects, so that a restart does not lose it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The parsed options of the spawn form.
    pub options: Options,
    /// The environment; on the objects it is the ConfigMap itself.
    #[serde(skip)]
    pub env: BTreeMap<String, String>,
    /// The user that lab processes run as.
    pub uid: u32,
    /// Their primary group.
    pub gid: u32,
    /// Every group of the user.
    pub groups: Vec<Group>,
    /// What the lab may use.
    pub quotas: Option<Quotas>,
    /// The image, pinned.
    pub image: Option<Image>,
    /// When the spawn began; on the objects it is a part of the record.
    #[serde(skip)]
    pub started_at: Option<Timestamp>,
    /// The policies that decided.
    pub policy: Vec<PolicyRef>,
}

/// What a lab may use, and what is set aside for it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Quotas {
    /// At most.
    pub limits: Share,
    /// At least.
    pub requests: Share,
}

/// CPUs and bytes of memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// In CPUs.
    pub cpu: Option<f64>,
    /// In bytes.
    pub memory: Option<u64>,
}

/// A policy and the component it was at that moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRef {
    /// The operator's name for it.
    pub name: String,
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
}
