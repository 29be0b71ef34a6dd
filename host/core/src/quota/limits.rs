use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How much one user may have, their labs and everything below them together. An absent limit does not limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Quota {
    /// Thousandths of a CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u64>,
    /// Bytes of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Bytes of storage in claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_bytes: Option<u64>,
    /// Pods at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<u32>,
    /// Labs at the same time, named servers counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labs: Option<u32>,
    /// Extended resources, such as `nvidia.com/gpu`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extended: BTreeMap<String, u64>,
}

/// What a user has now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// Labs that run, start or stop.
    pub labs: u32,
}
