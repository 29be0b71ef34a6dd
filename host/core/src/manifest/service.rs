//! The Service in front of a lab.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::metadata;
use crate::names::ObjectName;
use crate::names::lab::PORT_NAME;
use crate::names::labels::SPAWN_LABEL;
use crate::policy::ValidatedSpawn;
use crate::values::digest::Digest;

/// The number of hexadecimal digits in the name of a Service that cannot have the name of the pod.
const DIGITS: usize = 10;

/// Returns the name of the Service in front of this pod. It is the name of the pod, unless that begins with a digit or
/// has a dot, which Kubernetes does not allow in the name of a Service (RFC 1035).
pub fn service_name(pod: &ObjectName) -> ObjectName {
    let text = pod.as_str();
    if text.len() <= 63 && text.starts_with(|first: char| first.is_ascii_lowercase()) && !text.contains('.') {
        return pod.clone();
    }
    let hash = Digest::sha256(text.as_bytes()).short_hex(DIGITS);
    ObjectName::parse(format!("lab-{hash}")).unwrap_or_else(|_| pod.clone())
}

/// Builds a Service whose name resolves to the address of the lab's pod as soon as the pod has one. JupyterHub looks up
/// the name right after the lab is ready, and a name server that has denied the name before would keep denying it.
pub fn headless_service(spawn: &ValidatedSpawn) -> Service {
    let mut service = in_front_of(spawn);
    if let Some(spec) = &mut service.spec {
        spec.cluster_ip = Some("None".to_owned());
        spec.publish_not_ready_addresses = Some(true);
    }
    service
}

/// Builds a Service in front of the lab's pod. The label selects only that pod, because the lab's children have records
/// of their own.
pub(super) fn in_front_of(spawn: &ValidatedSpawn) -> Service {
    let selector = BTreeMap::from([(SPAWN_LABEL.to_owned(), spawn.spawn.to_string())]);
    Service {
        metadata: metadata::of_lab(spawn, &service_name(&spawn.names.pod)),
        spec: Some(ServiceSpec {
            selector: Some(selector),
            ports: Some(vec![ServicePort {
                name: Some(PORT_NAME.to_owned()),
                port: spawn.port.into(),
                target_port: Some(IntOrString::String(PORT_NAME.to_owned())),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_called_like_its_pod_where_that_is_possible() {
        let name = |pod: &str| service_name(&ObjectName::parse(pod).unwrap()).to_string();
        assert_eq!(name("nb-ada"), "nb-ada");
        let others = ["1ada".to_owned(), "nb-a.b".to_owned(), "x".repeat(64)];
        for pod in others {
            let name = name(&pod);
            assert!(name.starts_with("lab-") && name.len() == 14, "{pod}: {name}");
        }
        assert_ne!(name("1ada"), name("2ada"));
    }
}
