//! The objects of a lab in the pods of a workload: the lab's own objects, and the additions to the workload's pod
//! template.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, EmptyDirVolumeSource, EnvFromSource, EnvVar, LocalObjectReference, Pod, PodSecurityContext,
    PodSpec, PodTemplateSpec, SeccompProfile, Secret, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::{LabObjects, baseline, env_config_map, nss_config_map, pod, pull_secret, secret};
use crate::names::labels::JOB_ID_LABEL;
use crate::policy::{ValidatedSpawn, VolumeAccess, WorkloadAccess};
use crate::workload::{LabMark, Workload, installation_label};

/// The path at which Kubernetes mounts the token of a pod's service account into each of its containers, unless the
/// container has another mount there.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The name of the empty volume that is mounted there.
const NO_TOKEN: &str = "no-token";

/// The name of the image pull Secret among the parts of a lab.
const PULL_SECRET: &str = "pull";

/// The workload that gets a lab.
#[derive(Debug, Clone, PartialEq)]
pub struct Injection {
    /// The workload.
    pub workload: Workload,
    /// The uid of the workload.
    pub uid: String,
    /// The template of its pods.
    pub template: PodTemplateSpec,
    /// The parts of the workload that the lab sees.
    pub access: WorkloadAccess,
}

/// The objects of a lab in a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct InjectedLab {
    /// The objects in addition to the workload. The pod among them is the one that the lab would otherwise have; it is
    /// never created.
    pub objects: LabObjects,
    /// The patch that is applied to the workload.
    pub patch: Value,
    /// The features that the lab lacks because it has no pod of its own, in sentences.
    pub without: Vec<String>,
}

/// Builds a lab that is added to the pods of a workload.
///
/// The security baseline is that of every lab. It is set in the containers themselves, because the rest of the pod is
/// the workload's. Neither the configuration nor a grant can lift it here, because the pod belongs to somebody else.
/// The service's admission policy (`deploy/admission-policy.yaml`) allows no more. All settings of the pod as a whole
/// (node, priority, labels, supplemental groups) stay the workload's.
pub fn build_injected(spawn: &ValidatedSpawn, injection: &Injection) -> InjectedLab {
    let mark = LabMark::from_spawn(spawn.spawn.as_str());
    let pod = pod::build(spawn);
    let objects = LabObjects {
        namespace: None,
        service_account: None,
        env: env_config_map::build(spawn),
        nss: nss_config_map::build(spawn),
        secret: secret::build(spawn),
        pull_secret: pull_secret::build(spawn).map(|secret| named(secret, &mark)),
        claims: Vec::new(),
        resource_quota: None,
        limit_range: None,
        network_policy: None,
        routes: Vec::new(),
        pod: Pod { metadata: pod.metadata.clone(), spec: None, status: None },
    };
    let (template, without) = addition(spawn, pod, injection, &mark);
    let Injection { workload, uid, .. } = injection;
    let patch = json!({
        "apiVersion": "apps/v1",
        "kind": workload.kind.kind(),
        "metadata": { "name": workload.name, "namespace": workload.namespace, "uid": uid },
        "spec": { "template": template },
    });
    InjectedLab { objects, patch, without }
}

fn addition(
    spawn: &ValidatedSpawn,
    pod: Pod,
    injection: &Injection,
    mark: &LabMark,
) -> (PodTemplateSpec, Vec<String>) {
    let spec = pod.spec.unwrap_or_default();
    let mut without = Vec::new();
    let (mut volumes, absent): (Vec<Volume>, Vec<Volume>) =
        spec.volumes.into_iter().flatten().partition(is_for_any_pod);
    without.extend(absent.iter().map(|volume| {
        format!(
            "The volume `{}` is not there: a lab in a workload has neither volume claims nor paths of the node.",
            volume.name
        )
    }));
    volumes.push(Volume {
        name: NO_TOKEN.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource::default()),
        ..Volume::default()
    });
    let names: BTreeMap<String, String> =
        volumes.iter().map(|volume| (volume.name.clone(), mark.part(&volume.name))).collect();
    for volume in &mut volumes {
        volume.name = mark.part(&volume.name);
    }
    let settle = |mut container: Container, name: String| {
        container.name = name;
        settle(&mut container, spec.security_context.as_ref(), &names);
        container
    };
    let lab = spec.containers.into_iter().find(|container| container.name == spawn.config.container.as_str());
    let mut lab = settle(lab.unwrap_or_default(), mark.container());
    show(&mut lab, spawn, injection);
    // A readiness probe would take the workload out of its load balancer when the lab does not answer.
    lab.readiness_probe = None;
    if let Some(resources) = &mut lab.resources
        && resources.claims.take().is_some_and(|claims| !claims.is_empty())
    {
        without.push("Resource claims are not there: a lab in a workload has none.".to_owned());
    }
    let hindrance = |container: &Container| -> Option<String> {
        if runs_as_root(container) {
            return Some("runs as root".to_owned());
        }
        let mounts = container.volume_mounts.iter().flatten();
        let mut absent = mounts.filter(|mount| absent.iter().any(|volume| volume.name == mount.name));
        absent.next().map(|mount| format!("needs the volume `{}`", mount.name))
    };
    let (ready, hindered): (Vec<_>, Vec<_>) =
        spec.init_containers.into_iter().flatten().partition(|container| hindrance(container).is_none());
    without.extend(hindered.iter().filter_map(|container| {
        let why = hindrance(container)?;
        Some(format!("The preparation step `{}` is left out, because it {why}.", container.name))
    }));
    let init: Vec<Container> = ready
        .into_iter()
        .map(|container| {
            let name = mark.part(&container.name);
            settle(container, name)
        })
        .collect();
    let pull_secret = spawn.pull_secret.iter().map(|_| LocalObjectReference { name: mark.part(PULL_SECRET) });
    let secrets: Vec<LocalObjectReference> = pull_secret.collect();
    let mut labels = BTreeMap::from([
        (installation_label(&spawn.instance), "true".to_owned()),
        (mark.label(), spawn.job_id.to_string()),
    ]);
    labels.extend(job_label(spawn, injection));
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels),
            annotations: Some(BTreeMap::from([(mark.label(), spawn.key.to_string())])),
            ..ObjectMeta::default()
        }),
        spec: Some(PodSpec {
            containers: vec![lab],
            init_containers: (!init.is_empty()).then_some(init),
            volumes: Some(volumes),
            image_pull_secrets: (!secrets.is_empty()).then_some(secrets),
            ..PodSpec::default()
        }),
    };
    (template, without)
}

/// The label by which pods of labs are found by their operation. A pod has one label of that key, so that of the lab that
/// came first stays.
fn job_label(spawn: &ValidatedSpawn, injection: &Injection) -> Option<(String, String)> {
    let job_id = spawn.job_id.to_string();
    let labels = injection.template.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref());
    let known = labels.and_then(|labels| labels.get(JOB_ID_LABEL));
    known.is_none_or(|known| *known == job_id).then(|| (JOB_ID_LABEL.to_owned(), job_id))
}

/// Returns the patch of [`InjectedLab`] without the label of the operation, for a pod template that has got that of another
/// lab meanwhile.
pub fn without_job_label(patch: &Value) -> Value {
    let mut patch = patch.clone();
    if let Some(labels) = patch.pointer_mut("/spec/template/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove(JOB_ID_LABEL);
    }
    patch
}

/// Gives the Secret a name by which it is found in the workload's pod template.
fn named(mut secret: Secret, mark: &LabMark) -> Secret {
    secret.metadata.name = Some(mark.part(PULL_SECRET));
    secret
}

/// True for a volume that pods on several nodes can share, and that needs no privilege.
fn is_for_any_pod(volume: &Volume) -> bool {
    volume.persistent_volume_claim.is_none() && volume.ephemeral.is_none() && volume.host_path.is_none()
}

fn runs_as_root(container: &Container) -> bool {
    let context = container.security_context.as_ref();
    context.is_some_and(|context| context.run_as_user == Some(0) || context.privileged == Some(true))
}

/// Adds the settings that a container of the lab otherwise gets from its pod, and removes those that belong to the
/// workload.
fn settle(container: &mut Container, pod: Option<&PodSecurityContext>, volumes: &BTreeMap<String, String>) {
    let context = container.security_context.get_or_insert_default();
    if let Some(pod) = pod {
        context.run_as_user = context.run_as_user.or(pod.run_as_user);
        context.run_as_group = context.run_as_group.or(pod.run_as_group);
        context.run_as_non_root = context.run_as_non_root.or(pod.run_as_non_root);
        context.app_armor_profile =
            context.app_armor_profile.take().or_else(|| pod.app_armor_profile.clone());
    }
    context.allow_privilege_escalation = Some(false);
    context.capabilities = Some(baseline::no_capabilities());
    context.seccomp_profile =
        Some(SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None });
    let mounts = container.volume_mounts.get_or_insert_default();
    mounts.retain(|mount| mount.mount_path.trim_end_matches('/') != SERVICE_ACCOUNT);
    mounts.push(VolumeMount {
        name: NO_TOKEN.to_owned(),
        mount_path: SERVICE_ACCOUNT.to_owned(),
        read_only: Some(true),
        ..VolumeMount::default()
    });
    mounts.retain_mut(|mount| match volumes.get(&mount.name) {
        Some(name) => {
            mount.name.clone_from(name);
            true
        }
        None => false,
    });
}

/// Gives the lab access to the parts of the workload that its policies grant.
fn show(lab: &mut Container, spawn: &ValidatedSpawn, injection: &Injection) {
    let Injection { access, template, .. } = injection;
    let mounts = lab.volume_mounts.get_or_insert_default();
    for VolumeAccess { volume, path, sub_path, read_only } in &access.volumes {
        mounts.retain(|mount| mount.mount_path.trim_end_matches('/') != path.trim_end_matches('/'));
        mounts.push(VolumeMount {
            name: volume.clone(),
            mount_path: path.clone(),
            sub_path: sub_path.clone(),
            read_only: read_only.then_some(true),
            ..VolumeMount::default()
        });
    }
    let Some(name) = &access.environment_of else { return };
    let containers = template.spec.iter().flat_map(|spec| &spec.containers);
    let Some(theirs) = containers.into_iter().find(|container| container.name == *name) else { return };
    // Later sources override earlier ones.
    let mut sources: Vec<EnvFromSource> = theirs.env_from.clone().unwrap_or_default();
    sources.append(lab.env_from.get_or_insert_default());
    lab.env_from = Some(sources);
    let mut variables: Vec<EnvVar> = theirs.env.clone().unwrap_or_default();
    // Most of the lab's own variables are in its `ConfigMap`, which these would override.
    variables.retain(|variable| spawn.env.keys().all(|own| own.as_str() != variable.name));
    variables.append(lab.env.get_or_insert_default());
    lab.env = Some(variables);
}
