//! A workload whose pods get a lab.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::{NamespaceName, ObjectName};

/// The option with which a form requests a lab in a workload.
pub const WORKLOAD: &str = "workload";

/// A workload in the cluster, such as `deployment/shop/web`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// Its kind.
    pub kind: WorkloadKind,
    /// Its namespace.
    pub namespace: NamespaceName,
    /// Its name.
    pub name: ObjectName,
}

/// The kinds of workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum WorkloadKind {
    /// A `Deployment`.
    Deployment,
    /// A `StatefulSet`.
    StatefulSet,
    /// A `DaemonSet`.
    DaemonSet,
}

/// Text that names no workload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidWorkload {
    /// The text does not have three parts.
    #[error("a workload is `KIND/NAMESPACE/NAME`, such as `deployment/shop/web`")]
    Parts,
    /// Labs cannot be put into workloads of this kind.
    #[error("`{0}` is no kind of workload; there are `deployment`, `statefulset` and `daemonset`")]
    Kind(String),
    /// A name that Kubernetes does not allow.
    #[error(transparent)]
    Name(#[from] crate::names::InvalidName),
}

impl WorkloadKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Deployment, Self::StatefulSet, Self::DaemonSet];

    /// Returns the kind as it is written in a user string.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "deployment",
            Self::StatefulSet => "statefulset",
            Self::DaemonSet => "daemonset",
        }
    }

    /// Returns the kind as Kubernetes writes it.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
        }
    }

    /// Returns the kind's name in URLs of the Kubernetes API.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Deployment => "deployments",
            Self::StatefulSet => "statefulsets",
            Self::DaemonSet => "daemonsets",
        }
    }
}

impl Workload {
    /// Parses a workload.
    pub fn parse(text: &str) -> Result<Self, InvalidWorkload> {
        let parts: Vec<_> = text.split('/').collect();
        let [kind, namespace, name] = parts.as_slice() else { return Err(InvalidWorkload::Parts) };
        let kind = WorkloadKind::ALL
            .into_iter()
            .find(|known| known.as_str() == *kind)
            .ok_or_else(|| InvalidWorkload::Kind((*kind).to_owned()))?;
        Ok(Self { kind, namespace: NamespaceName::parse(*namespace)?, name: ObjectName::parse(*name)? })
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.kind.as_str(), self.namespace, self.name)
    }
}
