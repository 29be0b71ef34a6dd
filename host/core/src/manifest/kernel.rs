//! The objects of a kernel: a pod like that of its lab, which runs the launcher in place of the lab's server.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{
    Affinity, Container, ContainerPort, KeyToPath, Pod, PodAffinity, PodAffinityTerm, Secret,
    SecretVolumeSource, Volume, VolumeMount,
};
use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::objects::LabObjects;
use super::{claim, env_config_map, metadata, nss_config_map, pod, pull_secret, secret};
use crate::kernel::{Launch, MOUNT_PATH, PORTS};
use crate::labels::{COMPONENT_LABEL, KERNEL, SERVER_LABEL, SPAWN_LABEL, USER_LABEL};
use crate::names::LabelValue;
use crate::policy::{AccessMode, ValidatedSpawn, VolumeSource};

/// The volume with the launcher's files.
const VOLUME: &str = "wasmspawner-kernel";
/// The name of the container.
const CONTAINER: &str = "kernel";
/// The prefix of the launcher's files in the kernel's Secret, which also holds other keys.
const KEY_PREFIX: &str = "kernel.";
/// Starts the launcher. On the one-machine cluster, where a mounted path is not the same for the program, a variable
/// says where the files are.
const START: &str =
    r#"exec python3 -I "${WASMSPAWNER_MOUNT_WASMSPAWNER_KERNEL:-/run/wasmspawner/kernel}/launcher.py""#;

/// The lab that a kernel belongs to, as the cluster has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentPod {
    /// The name of the lab's pod.
    pub name: String,
    /// The uid of the lab's pod.
    pub uid: String,
    /// The uid of the lab's record.
    pub spawn: LabelValue,
}

/// Builds the objects of a kernel. `spawn` is what the policies have decided for it.
///
/// It has the image, the volumes, the resources, the user and the security settings that a lab of these options would
/// have. It has no init containers, because those of its lab have prepared the volumes, and no service account, quota or
/// namespace of its own.
pub fn build_kernel(spawn: &ValidatedSpawn, launch: &Launch, parent: &ParentPod) -> LabObjects {
    LabObjects {
        namespace: None,
        service_account: None,
        env: env_config_map::build(spawn),
        nss: nss_config_map::build(spawn),
        secret: kernel_secret(spawn, launch),
        pull_secret: pull_secret::build(spawn),
        claims: claim::build(spawn),
        resource_quota: None,
        limit_range: None,
        network_policy: network_policy(spawn),
        pod: kernel_pod(spawn, launch, parent),
    }
}

fn kernel_secret(spawn: &ValidatedSpawn, launch: &Launch) -> Secret {
    let mut secret = secret::build(spawn);
    let files =
        launch.files().into_iter().map(|(name, text)| (format!("{KEY_PREFIX}{name}"), ByteString(text)));
    secret.data.get_or_insert_default().extend(files);
    secret
}

fn kernel_pod(spawn: &ValidatedSpawn, launch: &Launch, parent: &ParentPod) -> Pod {
    let mut pod = pod::build(spawn);
    pod.metadata.labels.get_or_insert_default().insert(COMPONENT_LABEL.to_owned(), KERNEL.to_owned());
    // If the service does not run when the lab's pod goes, the cluster deletes the kernel.
    pod.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        name: parent.name.clone(),
        uid: parent.uid.clone(),
        ..OwnerReference::default()
    }]);
    let Some(spec) = &mut pod.spec else { return pod };
    spec.init_containers = None;
    // The launcher starts a kernel that has ended anew; when the launcher ends, nobody needs the pod any more.
    spec.restart_policy = Some("Never".to_owned());
    if needs_node_of_lab(spawn) {
        join(spec.affinity.get_or_insert_default(), parent);
    }
    let items = launch.files().into_keys().map(|name| KeyToPath {
        key: format!("{KEY_PREFIX}{name}"),
        path: name.to_owned(),
        mode: None,
    });
    spec.volumes.get_or_insert_default().push(Volume {
        name: VOLUME.to_owned(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(spawn.names.object.to_string()),
            items: Some(items.collect()),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    });
    let lab = spawn.config.container.as_str();
    // Containers beside the lab's serve the lab. One that goes on would also keep the pod when the kernel has ended.
    spec.containers.retain(|container| container.name == lab);
    for container in &mut spec.containers {
        run_launcher(container, launch);
    }
    pod
}

fn run_launcher(container: &mut Container, launch: &Launch) {
    CONTAINER.clone_into(&mut container.name);
    container.command = Some(["/bin/sh", "-c", START].map(str::to_owned).to_vec());
    container.args = None;
    container.lifecycle = None;
    if launch.kernel.working_dir.is_some() {
        container.working_dir.clone_from(&launch.kernel.working_dir);
    }
    (container.startup_probe, container.readiness_probe, container.liveness_probe) = (None, None, None);
    let port = |number: u16| ContainerPort {
        container_port: number.into(),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    };
    container.ports = Some(PORTS.all().map(port).to_vec());
    container.volume_mounts.get_or_insert_default().push(VolumeMount {
        name: VOLUME.to_owned(),
        mount_path: MOUNT_PATH.to_owned(),
        read_only: Some(true),
        ..VolumeMount::default()
    });
}

/// True if a volume may be usable only on the node of the lab: a claim that one node at a time can mount, or of which
/// nobody knows how it can be mounted, or a folder of the node.
fn needs_node_of_lab(spawn: &ValidatedSpawn) -> bool {
    spawn.volumes.iter().any(|volume| match &volume.source {
        VolumeSource::HostPath(_) => true,
        VolumeSource::Claim(claim) => claim.create.as_ref().is_none_or(|template| {
            let of_many =
                |mode: &AccessMode| matches!(mode, AccessMode::ReadWriteMany | AccessMode::ReadOnlyMany);
            !template.access_modes.iter().any(of_many)
        }),
        _ => false,
    })
}

/// Puts the pod on the node of its lab.
fn join(affinity: &mut Affinity, parent: &ParentPod) {
    let labels = BTreeMap::from([(SPAWN_LABEL.to_owned(), parent.spawn.to_string())]);
    let term = PodAffinityTerm {
        label_selector: Some(LabelSelector { match_labels: Some(labels), ..LabelSelector::default() }),
        topology_key: "kubernetes.io/hostname".to_owned(),
        ..PodAffinityTerm::default()
    };
    let required = &mut affinity
        .pod_affinity
        .get_or_insert_with(PodAffinity::default)
        .required_during_scheduling_ignored_during_execution;
    required.get_or_insert_default().push(term);
}

/// Lets the lab and its other kernels reach the kernel. The lab's own policy holds for the kernel too, because it has the
/// lab's labels; this adds the kernel's ports.
fn network_policy(spawn: &ValidatedSpawn) -> Option<NetworkPolicy> {
    if !spawn.config.network_policy.enabled {
        return None;
    }
    let selector = |labels: &[(&str, String)]| LabelSelector {
        match_labels: Some(labels.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()),
        match_expressions: None,
    };
    let of_lab = selector(&[
        (USER_LABEL, spawn.names.user_label.to_string()),
        (SERVER_LABEL, spawn.names.server_label.to_string()),
    ]);
    let port = |number: u16| NetworkPolicyPort {
        port: Some(IntOrString::Int(number.into())),
        protocol: Some("TCP".to_owned()),
        ..NetworkPolicyPort::default()
    };
    Some(NetworkPolicy {
        metadata: metadata::of_lab(spawn, &spawn.names.object),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(selector(&[(SPAWN_LABEL, spawn.spawn.to_string())])),
            policy_types: Some(vec!["Ingress".to_owned()]),
            ingress: Some(vec![NetworkPolicyIngressRule {
                from: Some(vec![NetworkPolicyPeer {
                    pod_selector: Some(of_lab),
                    ..NetworkPolicyPeer::default()
                }]),
                ports: Some(PORTS.all().map(port).to_vec()),
            }]),
            egress: None,
        }),
    })
}
