//! The description of a started lab in its record, without secrets.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::children::dask::WorkerRange;
use crate::custom_resource::blueprint::ForeignBlueprint;
use crate::policy::compose::FieldsBySource;
use crate::policy::{Image, Options};
use crate::users::identity::Group;

/// The options, user, image and resources of a lab. Complete once the policies have decided. It does not contain the
/// environment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LabDescription {
    /// The parsed options of the spawn form.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub options: Options,
    /// The UID that the lab's processes run as.
    pub uid: u32,
    /// The GID of the user's primary group.
    pub gid: u32,
    /// All groups of the user.
    pub groups: Vec<Group>,
    /// Limits and requests of the lab's resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quotas: Option<Quotas>,
    /// The image, with its digest if it is pinned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// The policies that decided about the lab.
    pub policies: Vec<PolicyRef>,
    /// Which fields of the lab who decided; empty until the policies have decided.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub decided_by: FieldsBySource,
    /// Environment variables whose values are not in the lab's `ConfigMap`, and the text that is shown in place of the
    /// values: credentials, and values that only the pod knows.
    pub hidden_env: BTreeMap<String, String>,
    /// The blueprint of a repository or a user, if the lab is of one. What the lab starts is of the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign_blueprint: Option<ForeignBlueprint>,
    /// The kernel, if this is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelDescription>,
    /// The Dask pool, if this is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolDescription>,
}

/// A kernel in its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KernelDescription {
    /// The name of its kernel spec: `python3`.
    pub name: String,
    /// Digest of the token with which its launcher presents itself: `sha256:` and 64 hexadecimal digits. The token
    /// itself is random, and long enough that nobody finds it from its digest.
    pub launcher: String,
}

/// A Dask pool in its record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolDescription {
    /// How many workers it has.
    pub workers: WorkerRange,
    /// After how many idle seconds it ends; absent if it does not end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<u32>,
    /// True if it goes on when its lab ends.
    #[serde(default)]
    pub outlives_lab: bool,
    /// Digest of the certificate with which its clients know it: `sha256:` and 64 hexadecimal digits.
    #[serde(default)]
    pub certificate: String,
    /// Digest of the token with which its scheduler presents itself, as for the launcher of a kernel.
    pub keeper: String,
    /// The pod from which its workers are made; absent until the policies have decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub worker: Option<serde_json::Value>,
}

impl LabDescription {
    /// Returns the digest of the token of the program that the service has put into the pod of a child.
    pub fn token_digest(&self) -> Option<&str> {
        let launcher = self.kernel.as_ref().map(|kernel| kernel.launcher.as_str());
        launcher.or_else(|| self.pool.as_ref().map(|pool| pool.keeper.as_str()))
    }
}

/// Limits and requests of a lab's resources.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quotas {
    /// The limits: the most that the lab may use.
    pub limits: ResourceAmount,
    /// The requests: what is reserved for the lab.
    pub requests: ResourceAmount,
}

/// An amount of CPU and memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceAmount {
    /// Number of CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    /// Memory in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

/// A policy, and the component with which it decided about the lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyRef {
    /// The policy's name in the configuration.
    pub name: String,
    /// Digest of the component: `sha256:` and 64 hexadecimal digits.
    pub digest: String,
}
