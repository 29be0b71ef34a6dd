use serde::{Deserialize, Serialize};

use super::Pair;

/// The access mode of a claim: how many nodes may mount it, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessMode {
    /// One node, read and write.
    ReadWriteOnce,
    /// Many nodes, read only.
    ReadOnlyMany,
    /// Many nodes, read and write.
    ReadWriteMany,
    /// One pod, read and write.
    ReadWriteOncePod,
}

/// What happens to a claim when JupyterHub deletes the server that used it. Stopping a lab never deletes a claim.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ClaimReclaim {
    /// The claim stays.
    #[default]
    Retain,
    /// The claim is deleted with the last server that used it.
    Delete,
}

/// A claim that the service creates if it does not exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimTemplate {
    /// Requested size in bytes.
    pub storage_bytes: u64,
    /// Storage class; absent for the cluster's default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<String>,
    /// Access modes; empty means `read_write_once`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access_modes: Vec<AccessMode>,
    /// Labels of the claim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Pair>,
    /// Annotations of the claim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub annotations: Vec<Pair>,
    /// Labels that the volume behind the claim must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub selector: Vec<Pair>,
    /// The reclaim policy: what happens to the claim when its server is deleted.
    #[serde(default)]
    pub reclaim: ClaimReclaim,
}

/// A directory of an NFS server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NfsSource {
    /// Host name or address of the server.
    pub server: String,
    /// The exported path.
    pub path: String,
    /// Mounted read only.
    #[serde(default)]
    pub read_only: bool,
}

/// A `PersistentVolumeClaim`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimSource {
    /// Name of the claim in the lab's namespace.
    pub claim_name: String,
    /// Mounted read only.
    #[serde(default)]
    pub read_only: bool,
    /// The template of the claim that is created if it does not exist; absent to create none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create: Option<ClaimTemplate>,
}

/// A `ConfigMap` or a Secret of the lab's namespace, mounted as files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectSource {
    /// Name of the object.
    pub name: String,
    /// True if the lab may start without the object.
    #[serde(default)]
    pub optional: bool,
    /// Key and relative path of each file; empty for all keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<(String, String)>,
    /// File mode, at most `0o777`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

/// A directory that lives as long as the pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EmptyDirSource {
    /// Size limit in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_limit_bytes: Option<u64>,
    /// True for a directory in memory, which counts towards the container's memory limit.
    pub memory: bool,
}

/// The source of a volume's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VolumeSource {
    /// An NFS export.
    Nfs(NfsSource),
    /// A `PersistentVolumeClaim`.
    Claim(ClaimSource),
    /// A ConfigMap.
    ConfigMap(ObjectSource),
    /// A Secret. Needs the grant `secrets: [name]`.
    Secret(ObjectSource),
    /// A scratch directory.
    EmptyDir(EmptyDirSource),
    /// A path of the node. Needs the grant `host-path: [prefix]`.
    HostPath(String),
}

/// A volume of the pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    /// Name within the pod, a DNS label.
    pub name: String,
    /// The source of the volume's files.
    pub source: VolumeSource,
}

/// A mount of a volume in a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// Name of the volume.
    pub volume: String,
    /// Absolute path in the container.
    pub path: String,
    /// Relative path within the volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_path: Option<String>,
    /// Mounted read only.
    #[serde(default)]
    pub read_only: bool,
}
