//! `policies`: the chain that decides what labs look like.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::grants::Grants;

/// One policy of the chain. They are asked in the order given; where they disagree the later one wins.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyConfig {
    /// A name for logs, metrics and errors; unique in the chain.
    pub name: String,
    /// A WebAssembly component (`*.wasm`), or a directory that holds exactly one. Relative to the configuration file.
    pub path: PathBuf,
    /// `sha256:` and 64 hexadecimal digits: any other file is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The policy's own configuration, of the shape it publishes.
    #[serde(default)]
    pub config: serde_json::Map<String, serde_json::Value>,
    /// What the policy may ask for beyond the ordinary.
    #[serde(default)]
    pub grants: Grants,
    /// What happens when the policy fails.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// Limits of one call.
    #[serde(default)]
    pub limits: CallLimits,
}

/// What happens to a request when a policy fails by its own fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// The request fails, and the policy is named.
    #[default]
    Deny,
    /// The request goes on as if the policy were not there.
    Skip,
}

/// Limits of one call of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CallLimits {
    /// Computing time in milliseconds.
    #[schemars(range(min = 10, max = 10_000))]
    pub deadline_ms: u64,
    /// Memory in MiB.
    #[schemars(range(min = 1, max = 128))]
    pub memory_mib: u32,
    /// Size of an answer in bytes.
    pub answer_bytes: usize,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self { deadline_ms: 200, memory_mib: 128, answer_bytes: 1 << 20 }
    }
}
