//! The spec of a blueprint.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Package;
use crate::names::{EnvName, ObjectName};
use crate::values::options::Value;

/// A description of a lab. Everything may be left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct BlueprintSpec {
    /// The name that people read. Default: the blueprint's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// What it is for, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Blueprints that this one begins with, in order. A later one counts over an earlier one, and this one over them all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extends: Vec<ObjectName>,
    /// Groups whose members may choose it. Default: everybody may.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// True for a blueprint that nobody chooses: it holds for every lab of its groups, below the one that was chosen.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub platform: bool,
    /// The option `image`: one of the site's images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The option `size`: one of the site's sizes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// Other options of the site's spawn form.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, Value>,
    /// Environment variables of the lab.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<EnvName, String>,
    /// Volumes, and where the lab has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<BlueprintVolume>,
    /// Containers that run before the lab, in order, as the lab's user.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<BlueprintInit>,
    /// Packages that are installed before the lab starts.
    #[serde(skip_serializing_if = "Packages::is_empty")]
    pub packages: Packages,
}

/// A volume. It has one source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlueprintVolume {
    /// Its name, of lower case letters, digits and hyphens.
    pub name: String,
    /// Where the lab has it: an absolute path.
    pub mount_path: String,
    /// The part of the volume that the lab has: a relative path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_path: Option<String>,
    /// Whether the lab may only read it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// A directory of an NFS server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nfs: Option<Export>,
    /// A volume claim in the lab's namespace, which exists already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimName>,
    /// A `ConfigMap` in the lab's namespace, which exists already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<MapName>,
    /// An empty directory that lives as long as the lab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_dir: Option<EmptyDir>,
}

/// A directory of an NFS server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Export {
    /// The server's name or address.
    pub server: String,
    /// The exported path.
    pub path: String,
}

/// Names a volume claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimName {
    /// Its name. The template fields of the lab count, such as `{username}`.
    pub name: String,
}

/// Names a `ConfigMap`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MapName {
    /// Its name. The template fields of the lab count, such as `{username}`.
    pub name: String,
}

/// An empty directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct EmptyDir {
    /// The most that it may hold, such as `2Gi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_limit: Option<String>,
}

/// A container that runs before the lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlueprintInit {
    /// Its name, of lower case letters, digits and hyphens.
    pub name: String,
    /// Its image. Default: that of the lab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its environment variables. It has none of the lab's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<EnvName, String>,
    /// Volumes of the blueprint, and where it has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<BlueprintMount>,
}

/// Where an init container has a volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlueprintMount {
    /// The volume's name.
    pub volume: String,
    /// An absolute path.
    pub mount_path: String,
}

/// Packages that are installed before the lab starts, with the programs of the lab's image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Packages {
    /// Python packages, as pip takes them: `pandas`, `xarray>=2026.1`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pip: Vec<Package>,
}

impl Packages {
    /// Returns true if there are no packages.
    pub fn is_empty(&self) -> bool {
        self.pip.is_empty()
    }
}
