//! The part of the cluster in which labs are.

use k8s_openapi::NamespaceResourceScope;
use kube::api::Api;
use kube::{Client, Resource};
use wasmspawner_core::config::Config;
use wasmspawner_core::names::NamespaceName;

/// The part of the cluster in which labs are. Lists and watches of their objects cover it and nothing else, because the
/// service may have no permissions beyond it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// All namespaces.
    Cluster,
    /// The one namespace of all labs.
    Namespace(NamespaceName),
}

impl Reach {
    /// The reach that the configuration demands.
    pub fn from_config(config: &Config) -> Self {
        config.lab_namespaces.single().cloned().map_or(Self::Cluster, Self::Namespace)
    }

    /// The objects of a kind within the reach.
    pub fn all<K>(&self, client: Client) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        match self {
            Self::Cluster => Api::all(client),
            Self::Namespace(namespace) => Api::namespaced(client, namespace.as_str()),
        }
    }
}
