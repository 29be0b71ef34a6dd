//! The Service in front of a lab.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::metadata;
use crate::digest::Digest;
use crate::lab::PORT_NAME;
use crate::labels::SPAWN_LABEL;
use crate::names::ObjectName;
use crate::policy::ValidatedSpawn;

/// How many hexadecimal digits the name of a Service has that cannot be that of the pod.
const DIGITS: usize = 10;

/// The name of the Service in front of this pod: that of the pod, unless it begins with a digit or has a dot, which Kubernetes
/// allows in no name of a Service (RFC 1035).
pub fn service_name(pod: &ObjectName) -> ObjectName {
    let text = pod.as_str();
    if text.len() <= 63 && text.starts_with(|first: char| first.is_ascii_lowercase()) && !text.contains('.') {
        return pod.clone();
    }
    let hash = Digest::of(text.as_bytes()).short_hex(DIGITS);
    ObjectName::parse(format!("lab-{hash}")).unwrap_or_else(|_| pod.clone())
}

/// A Service whose name means the address of the lab's pod, as soon as the pod has one: JupyterHub asks for it right after the
/// lab is ready, and a name server that had said no before would go on to say it.
pub fn headless_service(spawn: &ValidatedSpawn) -> Service {
    let mut service = in_front_of(spawn);
    if let Some(spec) = &mut service.spec {
        spec.cluster_ip = Some("None".to_owned());
        spec.publish_not_ready_addresses = Some(true);
    }
    service
}

/// What a lab has started has records of its own, so that the label selects the lab's pod only.
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
