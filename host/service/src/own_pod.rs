//! The pod in which the service runs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

/// Returns the pod of this service, from `WASMSPAWNER_POD_NAME` and `WASMSPAWNER_POD_UID`; `None` if either is not set.
pub(crate) fn own_pod() -> Option<OwnerReference> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    Some(OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        name: variable("WASMSPAWNER_POD_NAME")?,
        uid: variable("WASMSPAWNER_POD_UID")?,
        // Without a controller, `kubectl drain` would refuse to remove the pods that belong to it.
        controller: Some(true),
        ..OwnerReference::default()
    })
}
