//! The common parts of the pods of all children. Each pod is like that of its lab, but runs a program of the service in
//! place of the lab's server.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{
    Affinity, Container, ContainerPort, KeyToPath, Pod, PodAffinity, PodAffinityTerm, Secret,
    SecretVolumeSource, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};

use super::{pod, secret};
use crate::names::LabelValue;
use crate::names::labels::{COMPONENT_LABEL, SPAWN_LABEL};
use crate::policy::{AccessMode, ValidatedSpawn, VolumeSource};

/// The lab that a child belongs to, as it is in the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentPod {
    /// The name of the lab's pod.
    pub name: String,
    /// The uid of the lab's pod.
    pub uid: String,
    /// The uid of the lab's record.
    pub spawn: LabelValue,
}

impl ParentPod {
    /// Returns an owner reference to the pod. The cluster deletes the objects that have it when the pod is deleted,
    /// even while the service does not run.
    pub fn as_owner(&self) -> OwnerReference {
        OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            ..OwnerReference::default()
        }
    }
}

/// The files of a program in the Secret of its spawn, which also holds other keys.
pub(super) struct ProgramFiles {
    /// The prefix of the files' keys.
    pub(super) prefix: &'static str,
    /// The files, by name.
    pub(super) files: BTreeMap<&'static str, Vec<u8>>,
}

/// The program that a child's pod runs.
pub(super) struct Program<'a> {
    /// The purpose of the pod, for its label.
    pub(super) component: &'static str,
    /// The name of the container.
    pub(super) container: &'static str,
    /// The name of the volume with the program's files.
    pub(super) volume: &'static str,
    /// The path at which that volume is mounted.
    pub(super) path: &'static str,
    /// The program's file and its arguments.
    pub(super) command: &'static str,
    /// The ports on which it listens.
    pub(super) ports: &'a [u16],
    /// The prefix of the files' keys in the Secret, and their names.
    pub(super) files: (&'static str, Vec<&'static str>),
    /// The uid of the record of a pod. If the volumes of the child are on one node, the child has to run on that pod's
    /// node.
    pub(super) beside: &'a LabelValue,
}

/// Builds the Secret of a child: that of its lab, with the program's files added.
pub(super) fn secret(spawn: &ValidatedSpawn, program: ProgramFiles) -> Secret {
    let mut secret = secret::build(spawn);
    let ProgramFiles { prefix, files } = program;
    let files = files.into_iter().map(|(name, text)| (format!("{prefix}{name}"), ByteString(text)));
    secret.data.get_or_insert_default().extend(files);
    secret
}

/// Builds the pod of a child. It has no init containers, because those of its lab have prepared the volumes.
pub(super) fn pod(spawn: &ValidatedSpawn, program: &Program<'_>) -> Pod {
    let mut pod = pod::build(spawn);
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(COMPONENT_LABEL.to_owned(), program.component.to_owned());
    let Some(spec) = &mut pod.spec else { return pod };
    spec.init_containers = None;
    // The program itself restarts what has ended. When the program ends, the pod is no longer needed.
    spec.restart_policy = Some("Never".to_owned());
    if needs_one_node(spawn) {
        join(spec.affinity.get_or_insert_default(), program.beside);
    }
    let (prefix, files) = &program.files;
    let items = files.iter().map(|name| KeyToPath {
        key: format!("{prefix}{name}"),
        path: (*name).to_owned(),
        mode: None,
    });
    spec.volumes.get_or_insert_default().push(Volume {
        name: program.volume.to_owned(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(spawn.names.object.to_string()),
            items: Some(items.collect()),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    });
    let lab = spawn.config.container.as_str();
    // The other containers serve the lab. One that keeps running would also keep the pod after the child has ended.
    spec.containers.retain(|container| container.name == lab);
    for container in &mut spec.containers {
        run(container, program);
    }
    pod
}

fn run(container: &mut Container, program: &Program<'_>) {
    program.container.clone_into(&mut container.name);
    let Program { volume, path, command, .. } = program;
    // On the one-machine cluster, the program sees the mount at another path, so a variable contains the path of the
    // files.
    let variable = format!("WASMSPAWNER_MOUNT_{}", volume.to_ascii_uppercase().replace('-', "_"));
    let start = format!(r#"exec python3 -I "${{{variable}:-{path}}}/"{command}"#);
    container.command = Some(vec!["/bin/sh".to_owned(), "-c".to_owned(), start]);
    container.args = None;
    container.lifecycle = None;
    (container.startup_probe, container.readiness_probe, container.liveness_probe) = (None, None, None);
    let port = |number: &u16| ContainerPort {
        container_port: (*number).into(),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    };
    container.ports = Some(program.ports.iter().map(port).collect());
    container.volume_mounts.get_or_insert_default().push(VolumeMount {
        name: program.volume.to_owned(),
        mount_path: program.path.to_owned(),
        read_only: Some(true),
        ..VolumeMount::default()
    });
}

/// True if a volume may be usable only on the node of the lab: a claim that only one node at a time can mount, a claim
/// with unknown access modes, or a directory of the node.
fn needs_one_node(spawn: &ValidatedSpawn) -> bool {
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

/// Requires that the pod runs on the node of the pod with this record.
fn join(affinity: &mut Affinity, spawn: &LabelValue) {
    let labels = BTreeMap::from([(SPAWN_LABEL.to_owned(), spawn.to_string())]);
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
