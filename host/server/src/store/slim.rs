//! What is kept of an object: what a lab's stage is read from, and nothing else. A busy cluster has tens of thousands
//! of events, and a pod is mostly what it was asked to be.

use k8s_openapi::api::core::v1::{Container, Event, Pod, PodSpec};

/// A pod without what no stage is read from.
pub(super) fn pod(pod: Pod) -> Pod {
    let mut slim = Pod { metadata: pod.metadata, status: pod.status, spec: pod.spec.map(spec) };
    slim.metadata.managed_fields = None;
    slim.metadata.annotations = None;
    slim.metadata.owner_references = None;
    slim.metadata.finalizers = None;
    if let Some(status) = &mut slim.status {
        status.qos_class = None;
        status.host_ip = None;
        status.host_ips = None;
        status.pod_ips = None;
        status.ephemeral_container_statuses = None;
    }
    slim
}

fn spec(spec: PodSpec) -> PodSpec {
    PodSpec {
        node_name: spec.node_name,
        restart_policy: spec.restart_policy,
        volumes: spec.volumes.map(|volumes| {
            volumes
                .into_iter()
                .filter(|volume| volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some())
                .collect()
        }),
        containers: spec.containers.into_iter().map(container).collect(),
        init_containers: spec.init_containers.map(|all| all.into_iter().map(container).collect()),
        ..PodSpec::default()
    }
}

fn container(container: Container) -> Container {
    Container {
        name: container.name,
        image: container.image,
        restart_policy: container.restart_policy,
        ..Container::default()
    }
}

/// An event without what no stage is read from.
pub(super) fn event(event: Event) -> Event {
    let mut metadata = event.metadata;
    metadata.managed_fields = None;
    metadata.annotations = None;
    metadata.labels = None;
    Event {
        metadata,
        reporting_component: None,
        reporting_instance: None,
        related: None,
        action: None,
        ..event
    }
}
