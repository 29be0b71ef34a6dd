//! The pod in which the service runs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use wasmspawner_kubernetes::published_address::PodAddress;

/// The name and the uid of the pod of this service.
pub(crate) struct OwnPod {
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl OwnPod {
    /// Reads `WASMSPAWNER_POD_NAME` and `WASMSPAWNER_POD_UID`. Returns `None` if either is not set.
    pub(crate) fn from_environment() -> Option<Self> {
        Some(Self { name: variable("WASMSPAWNER_POD_NAME")?, uid: variable("WASMSPAWNER_POD_UID")? })
    }

    /// Returns the reference that makes this pod the owner of another object.
    pub(crate) fn owner_reference(self) -> OwnerReference {
        OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            name: self.name,
            uid: self.uid,
            // Without a controller, `kubectl drain` would refuse to remove the pods that belong to it.
            controller: Some(true),
            ..OwnerReference::default()
        }
    }

    /// Returns where the pod is reached, with `WASMSPAWNER_POD_IPS` and `WASMSPAWNER_NODE_NAME`. Addresses that cannot be
    /// read are left out.
    pub(crate) fn address(self) -> PodAddress {
        let addresses = variable("WASMSPAWNER_POD_IPS").unwrap_or_default();
        PodAddress {
            addresses: addresses.split(',').filter_map(|address| address.trim().parse().ok()).collect(),
            node: variable("WASMSPAWNER_NODE_NAME"),
            name: self.name,
            uid: self.uid,
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
