use serde::{Deserialize, Serialize};

use super::{EnvVar, Mount, Resources};

/// How privileged an init container is. A policy names a profile, never a security context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecurityProfile {
    /// As the lab: its user, no capabilities.
    #[default]
    Restricted,
    /// May run as root, without privilege. Needs the grant `run-as-root-init`.
    Baseline,
    /// Needs the grant `privileged-init`.
    Privileged,
}

/// When an init container runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InitRun {
    /// At every start of the lab.
    #[default]
    Always,
    /// Until one lab of this user has started successfully. It must be idempotent all the same.
    UntilProvisioned,
}

/// A container that ends before the lab starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InitContainer {
    /// Name within the pod, a DNS label.
    pub name: String,
    /// Image reference.
    pub image: String,
    /// Replaces the image's entry point unless empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Replaces the image's arguments unless empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Its environment; it does not get the lab's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// Its mounts; it does not get the lab's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// Its resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// How privileged it is.
    #[serde(default)]
    pub profile: SecurityProfile,
    /// When it runs.
    #[serde(default)]
    pub run: InitRun,
}
