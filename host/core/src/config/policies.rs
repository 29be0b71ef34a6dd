//! `policies`: the chain of policies that decides about labs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DataSource, InvalidSetting, PublicKeySource};
use crate::config::grants::Grants;

/// One policy of the chain. Policies are called in the order given; where two disagree the later one wins.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyConfig {
    /// Name of the policy in logs, metrics and errors; unique in the chain.
    pub name: String,
    /// A WebAssembly component (`*.wasm`), or a directory with exactly one, relative to the configuration file. A link that
    /// leads out of the file's folder is not followed. A change is noticed within a few seconds, and used if the new component
    /// is good. A policy has either this or `oci`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// An OCI artifact in a registry, such as `ghcr.io/site/policy:1.2` or `ghcr.io/site/policy@sha256:...`. A tag is looked
    /// up when the service starts and when the configuration is read again; a digest is downloaded once. See `registries`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<String>,
    /// Expected digest of the component: `sha256:` and 64 hexadecimal digits. A component with another digest is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Public keys, as files in PEM relative to the configuration file, or as the PEM itself. The component is used only if one of
    /// them has signed it: for `oci` with `cosign sign --key`, for `path` with `cosign sign-blob --key`, whose bundle is beside the
    /// component as `FILE.sigstore.json`. It holds for the candidate, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<Vec<PublicKeySource>>,
    /// Hooks that the component must have. A component without one of them is refused, so that a rule is not lost with a build
    /// that left it out: `[authorize]` for a policy that says who may do what.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub requires: BTreeSet<HookName>,
    /// The policy's own configuration. The policy publishes its schema.
    #[serde(default)]
    pub config: serde_json::Map<String, serde_json::Value>,
    /// Data that the policy may read by these names: a file of YAML, JSON or CSV, or the `url` of such a document. It changes
    /// while the policy is used, and the policy can tell.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, DataSource>,
    /// Privileged settings that the policy may use.
    #[serde(default)]
    pub grants: Grants,
    /// What happens to a request when the policy fails.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// Limits of one call of the policy.
    #[serde(default)]
    pub limits: CallLimits,
    /// What may replace the policy one day. It is asked what the policy is asked, and its answers are compared with those of the
    /// policy, and otherwise ignored: see `GET /policies`, the metric `policy_comparisons` and `wasmspawner policy diff`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<CandidateConfig>,
}

/// A hook of policies, by the name of its interface in `wit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HookName {
    /// The spawn form.
    Form,
    /// Limits of what a user may have.
    Quota,
    /// The rules about who may do what.
    Authorize,
    /// The rules about labs in workloads.
    Inject,
    /// Reports of what has happened.
    Events,
    /// The pod of a lab.
    BuildPod,
    /// How the program in a lab is reached.
    LabServer,
    /// The text files of a lab.
    LabFiles,
    /// The images from which users choose.
    Images,
}

impl HookName {
    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Quota => "quota",
            Self::Authorize => "authorize",
            Self::Inject => "inject",
            Self::Events => "events",
            Self::BuildPod => "build-pod",
            Self::LabServer => "lab-server",
            Self::LabFiles => "lab-files",
            Self::Images => "images",
        }
    }
}

/// A candidate for a policy. What is absent is as for the policy; its grants and limits are those of the policy.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CandidateConfig {
    /// A WebAssembly component, as for the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// An OCI artifact, as for the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<String>,
    /// Expected digest of the component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The configuration of the candidate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<serde_json::Map<String, serde_json::Value>>,
    /// The data of the candidate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<BTreeMap<String, DataSource>>,
}

/// What happens to a request when a policy fails through its own fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// The request fails, with an error that names the policy.
    #[default]
    Deny,
    /// The form or the pod is made without this policy. The hooks `authorize` and `quota`, and the parsing of a form, are
    /// never skipped: the request fails.
    Skip,
    /// The version of the policy that was in use before answers instead, with its own configuration and with the present grants.
    /// There is one if the policy was changed while the service ran, or between two starts with the same `state_dir`, and none that
    /// was signed by a key which is no longer in `signed_by`. Without one, or if that fails too, the request fails. It also stands in
    /// for a policy that cannot be loaded when the service starts, until that policy can be loaded.
    LastGood,
}

/// Limits of one call of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CallLimits {
    /// Computing time in milliseconds.
    #[schemars(range(min = 10, max = 10_000))]
    pub deadline_ms: u64,
    /// Memory limit in MiB.
    #[schemars(range(min = 1, max = 128))]
    pub memory_mib: u32,
    /// Largest size of an answer in bytes.
    pub answer_bytes: usize,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self { deadline_ms: 200, memory_mib: 128, answer_bytes: 1 << 20 }
    }
}

/// Names are unique, and each policy has one source.
pub(super) fn check(policies: &[PolicyConfig]) -> Vec<InvalidSetting> {
    let sources = policies.iter().enumerate().filter_map(source_of_policy);
    let candidates = policies.iter().enumerate().filter_map(source_of_candidate);
    let data = policies.iter().enumerate().flat_map(data_of_policy);
    let keys = policies.iter().enumerate().filter_map(keys_of_policy);
    let administrators = policies.iter().enumerate().filter_map(administrators_of_policy);
    let of_each = sources.chain(candidates).chain(data).chain(keys).chain(administrators);
    duplicate_policy(policies).into_iter().chain(of_each).collect()
}

/// A grant for administrators allows something to somebody.
fn administrators_of_policy((index, policy): (usize, &PolicyConfig)) -> Option<InvalidSetting> {
    let (key, problem) = policy.grants.administrators.as_ref()?.problem()?;
    Some(InvalidSetting::new(format!("policies[{index}].grants.administrators.{key}"), problem))
}

/// No key at all would be a policy that nobody can sign.
fn keys_of_policy((index, policy): (usize, &PolicyConfig)) -> Option<InvalidSetting> {
    policy.signed_by.as_ref().is_some_and(Vec::is_empty).then(|| {
        let problem = "names no key; name the public key of whoever signs the policy, or remove `signed_by`";
        InvalidSetting::new(format!("policies[{index}].signed_by"), problem)
    })
}

/// Data comes from where it can be read.
fn data_of_policy((index, policy): (usize, &PolicyConfig)) -> Vec<InvalidSetting> {
    let own = policy.data.iter().map(|(name, source)| (format!("data.{name}"), source));
    let candidate = policy.candidate.iter().flat_map(|candidate| candidate.data.iter().flatten());
    let candidate = candidate.map(|(name, source)| (format!("candidate.data.{name}"), source));
    own.chain(candidate).flat_map(|(key, source)| source.check(&format!("policies[{index}].{key}"))).collect()
}

/// A candidate differs from its policy, and comes from one place.
fn source_of_candidate((index, policy): (usize, &PolicyConfig)) -> Option<InvalidSetting> {
    let CandidateConfig { path, oci, digest, config, data } = policy.candidate.as_ref()?;
    let has_source = path.is_some() || oci.is_some();
    let problem = if path.is_some() && oci.is_some() {
        "has both `path` and `oci`; remove one of them"
    } else if !has_source && digest.is_some() {
        "has a `digest` without `path` or `oci`; add the component that it is of"
    } else if !has_source && config.is_none() && data.is_none() {
        "does not differ from its policy; write `path`, `oci`, `config` or `data`"
    } else {
        return None;
    };
    Some(InvalidSetting::new(format!("policies[{index}].candidate"), problem))
}

fn duplicate_policy(policies: &[PolicyConfig]) -> Option<InvalidSetting> {
    let twice = policies
        .iter()
        .enumerate()
        .find(|(index, policy)| policies[..*index].iter().any(|p| p.name == policy.name));
    twice.map(|(index, policy)| {
        InvalidSetting::new(
            format!("policies[{index}].name"),
            format!("`{}` is the name of an earlier policy too", policy.name),
        )
    })
}

/// A policy comes from one place.
fn source_of_policy((index, policy): (usize, &PolicyConfig)) -> Option<InvalidSetting> {
    let problem = match (&policy.path, &policy.oci) {
        (None, None) => "has neither `path`, a file, nor `oci`, an artifact in a registry; write one of them",
        (Some(_), Some(_)) => "has both `path` and `oci`; remove one of them",
        _ => return None,
    };
    Some(InvalidSetting::new(format!("policies[{index}]"), problem))
}
