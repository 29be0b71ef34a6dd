//! `kubernetes`: how the service connects to the cluster, and what it may do there.

use std::num::NonZeroU32;
use std::path::PathBuf;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::InvalidSetting;
use crate::names::{LabelValue, NamespaceName, ObjectName};
use crate::values::glob::Glob;

/// The connection to the cluster, and the service's namespace in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KubernetesConfig {
    /// A kubeconfig file. Default: the pod's service account, or else `KUBECONFIG` and `~/.kube/config`.
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig. Default: its current context.
    pub context: Option<String>,
    /// The service's own namespace. Site secrets are read from it, and the records of spawns and volumes are stored in
    /// it.
    pub namespace: NamespaceName,
    /// The name of this installation. It separates the labs of this service from those of another in the same cluster.
    /// Default: the name of `kubernetes.namespace`.
    pub instance: Option<LabelValue>,
    /// The EndpointSlice of a Service without selector, in the service's own namespace. The process that leads writes its
    /// address there, so that no request goes to another; one that stands by is ready, too. The chart makes it. Default:
    /// none, and only the process that leads is ready.
    pub endpoint_slice: Option<ObjectName>,
    /// Whether labs have namespaces of their own, and what happens to those when a lab is stopped.
    pub namespaces: NamespaceReclaim,
    /// With `namespaces: delete`: how long the empty namespace of a lab that has ended is kept for the next lab of the same
    /// server, which then need not wait until Kubernetes has removed it. `0s`: it is deleted at once. Default: `10m`. Labs
    /// whose pods have a token for the Kubernetes API always get a new namespace.
    #[schemars(with = "Option<String>")]
    #[serde(deserialize_with = "crate::config::span::parse_optional")]
    pub delete_namespaces_after: Option<SignedDuration>,
    /// With `namespaces: retain`: namespaces that are for labs whoever has made them, by name, or by a prefix that ends with
    /// `*`. Labs get no other namespace that the service has not made itself, except the one that `names.namespace` names if
    /// it is the same for all labs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub existing_namespaces: Vec<NamespacePattern>,
    /// Most requests to the API server per second, watches excepted. After a quiet second the same number may be sent
    /// at once. Deletions go first and lists last. `null`: no limit.
    pub requests_per_second: Option<NonZeroU32>,
    /// Time limit of one request to the API server.
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub request_timeout: SignedDuration,
}

/// Whether labs have namespaces of their own, and what happens to those when a lab is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NamespaceReclaim {
    /// Everything in the namespace is deleted, volume claims included (SQR-066), and the namespace itself after
    /// `delete_namespaces_after`.
    #[default]
    Delete,
    /// The namespace and the volume claims in it stay; only the lab's own objects are deleted.
    Retain,
    /// All labs are in one namespace, which exists already. The service neither creates nor reads nor changes it, and
    /// needs no permissions outside of it and its own namespace.
    Single,
}

/// The name of a namespace, or a prefix of names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct NamespacePattern(Glob);

impl NamespacePattern {
    /// True for a namespace of this name.
    pub fn matches(&self, name: &str) -> bool {
        self.0.matches(name)
    }
}

impl TryFrom<String> for NamespacePattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let begin = text.strip_suffix('*').unwrap_or(&text);
        let is_name = !begin.is_empty()
            && begin.len() <= 63
            && begin.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        if is_name {
            return Ok(Self(Glob::from(text.as_str())));
        }
        Err(format!(
            "{text:?} is neither the name of a namespace nor a prefix of names: write labs or labs-*"
        ))
    }
}

impl From<NamespaceName> for NamespacePattern {
    fn from(name: NamespaceName) -> Self {
        Self(Glob::from(name.as_str()))
    }
}

impl NamespaceReclaim {
    /// True if each lab has a namespace that is deleted with it.
    pub fn is_deleted(self) -> bool {
        self == Self::Delete
    }
}

impl Default for KubernetesConfig {
    fn default() -> Self {
        Self {
            kubeconfig: None,
            context: None,
            namespace: NamespaceName::constant("wasmspawner"),
            instance: None,
            endpoint_slice: None,
            namespaces: NamespaceReclaim::default(),
            delete_namespaces_after: None,
            existing_namespaces: Vec::new(),
            requests_per_second: NonZeroU32::new(200),
            request_timeout: SignedDuration::from_secs(30),
        }
    }
}

impl KubernetesConfig {
    /// The name of this installation. Without one of its own it is that of the namespace, which no other has.
    pub fn instance(&self) -> LabelValue {
        self.instance.clone().unwrap_or_else(|| LabelValue::for_name(self.namespace.as_str()))
    }

    /// The time for which the empty namespace of a lab that has ended is kept; `None` if it is deleted at once, or stays.
    pub fn namespaces_kept_for(&self) -> Option<SignedDuration> {
        let kept = self.delete_namespaces_after.unwrap_or(SignedDuration::from_mins(10));
        (self.namespaces.is_deleted() && kept.is_positive()).then_some(kept)
    }

    pub(super) fn check(&self) -> Result<(), InvalidSetting> {
        if let Some(kept) = self.delete_namespaces_after {
            if !self.namespaces.is_deleted() {
                let problem = "is for `kubernetes.namespaces: delete` alone; remove it, or choose that";
                return Err(InvalidSetting::new("kubernetes.delete_namespaces_after", problem));
            }
            if !kept.is_zero() {
                let longest = SignedDuration::from_hours(24 * 7);
                super::check_span("kubernetes.delete_namespaces_after", kept, longest)?;
            }
        }
        if !self.existing_namespaces.is_empty() && self.namespaces != NamespaceReclaim::Retain {
            let problem = "is for `kubernetes.namespaces: retain` alone; remove it, or choose that";
            return Err(InvalidSetting::new("kubernetes.existing_namespaces", problem));
        }
        super::check_span("kubernetes.request_timeout", self.request_timeout, SignedDuration::from_mins(10))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_without_a_name_has_that_of_its_namespace() {
        let of_physics = KubernetesConfig {
            namespace: NamespaceName::constant("hub-of-physics"),
            ..KubernetesConfig::default()
        };
        assert_eq!(of_physics.instance(), "hub-of-physics");
        let named = KubernetesConfig { instance: Some(LabelValue::constant("other")), ..of_physics };
        assert_eq!(named.instance(), "other");
    }
}
