use serde::{Deserialize, Serialize};

/// A claim on a device, made from a `ResourceClaimTemplate` of the lab's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceClaim {
    /// Name of the claim within the pod.
    pub name: String,
    /// Name of the `ResourceClaimTemplate`.
    pub template: String,
    /// One request of the claim; absent for the whole claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

/// The limits and requests of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Resources {
    /// CPU limit in thousandths of a CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_limit_millis: Option<u64>,
    /// CPU request in thousandths of a CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_request_millis: Option<u64>,
    /// Memory limit in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    /// Memory request in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_request_bytes: Option<u64>,
    /// Extended resources, such as `nvidia.com/gpu`. Request and limit are the same, as Kubernetes requires.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extended: Vec<(String, u64)>,
    /// Claims on devices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ResourceClaim>,
}
