//! `fieldRef` and `resourceFieldRef`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, PodSpec, ResourceFieldSelector};

use super::ConfigError;
use crate::quantity::milli;

/// What the kubelet knows about a pod before its status says so.
#[derive(Debug, Clone)]
pub(crate) struct PodFacts {
    pub(crate) pod_ip: String,
    pub(crate) host_ip: String,
    pub(crate) node_name: String,
    /// CPU of the node in thousandths and memory in bytes: the value of a limit nobody set.
    pub(crate) node_cpu_milli: i128,
    pub(crate) node_memory: i128,
}

/// The value of a pod's field, as `fieldRef` and the downward API name it.
pub(super) fn pod_field(pod: &Pod, facts: &PodFacts, path: &str) -> Result<String, ConfigError> {
    let metadata = &pod.metadata;
    let spec = pod.spec.as_ref();
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    Ok(match path {
        "metadata.name" => text(&metadata.name),
        "metadata.namespace" => text(&metadata.namespace),
        "metadata.uid" => text(&metadata.uid),
        "metadata.labels" => lines(metadata.labels.as_ref()),
        "metadata.annotations" => lines(metadata.annotations.as_ref()),
        "spec.nodeName" => facts.node_name.clone(),
        "spec.serviceAccountName" => {
            spec.and_then(|spec| spec.service_account_name.clone()).unwrap_or_else(|| "default".to_owned())
        }
        "status.podIP" | "status.podIPs" => facts.pod_ip.clone(),
        "status.hostIP" | "status.hostIPs" => facts.host_ip.clone(),
        other => {
            let entry = |prefix: &str| other.strip_prefix(prefix).and_then(|rest| rest.strip_suffix("']"));
            if let Some(key) = entry("metadata.labels['") {
                metadata.labels.as_ref().and_then(|map| map.get(key)).cloned().unwrap_or_default()
            } else if let Some(key) = entry("metadata.annotations['") {
                metadata.annotations.as_ref().and_then(|map| map.get(key)).cloned().unwrap_or_default()
            } else {
                return Err(ConfigError::UnsupportedField { path: path.to_owned() });
            }
        }
    })
}

/// The downward API writes a map as `key="value"` lines.
fn lines(map: Option<&BTreeMap<String, String>>) -> String {
    map.into_iter().flatten().map(|(key, value)| format!("{key}={value:?}")).collect::<Vec<_>>().join("\n")
}

/// The value of a container's limit or request in units of the divisor, rounded up; the node's capacity when unset.
pub(super) fn resource_field(
    spec: &PodSpec,
    facts: &PodFacts,
    own_container: &str,
    selector: &ResourceFieldSelector,
) -> Result<String, ConfigError> {
    let unsupported = || ConfigError::UnsupportedField { path: selector.resource.clone() };
    let wanted = selector.container_name.as_deref().unwrap_or(own_container);
    let container = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten())
        .find(|container| container.name == wanted)
        .ok_or_else(unsupported)?;
    let (kind, resource) = selector.resource.split_once('.').ok_or_else(unsupported)?;
    let resources = container.resources.as_ref();
    let map = match kind {
        "limits" => resources.and_then(|r| r.limits.as_ref()),
        "requests" => resources.and_then(|r| r.requests.as_ref()),
        _ => return Err(unsupported()),
    };
    let value = map.and_then(|map| map.get(resource)).and_then(|quantity| milli(&quantity.0));
    let value = match (value, kind, resource) {
        (Some(value), _, _) => value,
        (None, "limits", "cpu") => facts.node_cpu_milli,
        (None, "limits", "memory") => facts.node_memory * 1000,
        (None, _, _) => 0,
    };
    let divisor =
        selector.divisor.as_ref().and_then(|quantity| milli(&quantity.0)).filter(|d| *d > 0).unwrap_or(1000);
    Ok((value.div_euclid(divisor) + i128::from(value.rem_euclid(divisor) != 0)).to_string())
}
