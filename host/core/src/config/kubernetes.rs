//! `kubernetes`: the cluster, and the service's place in it.

use std::num::NonZeroU32;
use std::path::PathBuf;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::InvalidSetting;
use crate::names::{LabelValue, NamespaceName};

/// The cluster, and the service's place in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KubernetesConfig {
    /// A kubeconfig file. Absent: the pod's own service account, or the usual kubeconfig.
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; its current one when absent.
    pub context: Option<String>,
    /// The service's own namespace: site secrets are read from it, and records of users are kept in it.
    pub namespace: NamespaceName,
    /// Tells the labs of this service from those of another in the same cluster.
    pub instance: LabelValue,
    /// What becomes of a lab's namespace when the lab is stopped.
    pub namespaces: NamespaceReclaim,
    /// The most requests to the API server a second, watches aside; after a quiet while as many at once. Deletions go
    /// first, lists last. `null` for no limit.
    pub requests_per_second: Option<NonZeroU32>,
    /// Time limit of one request to the API server.
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub request_timeout: SignedDuration,
}

/// What becomes of a lab's namespace when the lab is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NamespaceReclaim {
    /// It is deleted, and with it everything in it, volume claims included (seed 000).
    #[default]
    Delete,
    /// It stays, with the volume claims in it; only the lab's own objects are deleted.
    Retain,
}

impl Default for KubernetesConfig {
    fn default() -> Self {
        Self {
            kubeconfig: None,
            context: None,
            namespace: NamespaceName::constant("wasmspawner"),
            instance: LabelValue::constant("wasmspawner"),
            namespaces: NamespaceReclaim::default(),
            requests_per_second: NonZeroU32::new(200),
            request_timeout: SignedDuration::from_secs(30),
        }
    }
}

impl KubernetesConfig {
    pub(super) fn check(&self) -> Result<(), InvalidSetting> {
        super::check_span("kubernetes.request_timeout", self.request_timeout, SignedDuration::from_mins(10))
    }
}
