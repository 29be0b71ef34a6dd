//! What a lab was started with, as far as it may be written down.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::identity::Group;
use crate::policy::{Image, Options};

/// What a lab was started with. Complete once the policies have decided; the environment is not a part of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LabDescription {
    /// The parsed options of the spawn form.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub options: Options,
    /// The user that lab processes run as.
    pub uid: u32,
    /// Their primary group.
    pub gid: u32,
    /// Every group of the user.
    pub groups: Vec<Group>,
    /// What the lab may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quotas: Option<Quotas>,
    /// The image, pinned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// The policies that decided.
    pub policies: Vec<PolicyRef>,
    /// Environment variables that are not in the environment's `ConfigMap`, and what is shown in place of their values:
    /// credentials, and what only the pod knows.
    pub hidden_env: BTreeMap<String, String>,
}

/// What a lab may use, and what is set aside for it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quotas {
    /// At most.
    pub limits: Share,
    /// At least.
    pub requests: Share,
}

/// CPUs and bytes of memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// In CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    /// In bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

/// A policy and the component it was at that moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyRef {
    /// The operator's name for it.
    pub name: String,
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
}
