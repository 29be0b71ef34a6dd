use std::collections::BTreeMap;

use k8s_openapi::DeepMerge as _;
use k8s_openapi::api::core::v1::{Container, LocalObjectReference, Pod, PodSpec};

use super::{
    baseline, default_resources, init_container, lab_container, metadata, resources, scheduling, volume,
};
use crate::policy::ValidatedSpawn;

/// Builds the lab's pod: settings of policies and site, then the granted patches, then the security baseline.
pub(super) fn build(spawn: &ValidatedSpawn) -> Pod {
    let mut metadata = metadata::of_lab(spawn, &spawn.names.pod);
    // Labels of the site and of the service win over those of a policy.
    metadata.labels = Some(below(&spawn.labels, metadata.labels));
    metadata.annotations = Some(below(&spawn.annotations, metadata.annotations));
    let mut pod = Pod { metadata, spec: Some(spec(spawn)), status: None };
    for patch in &spawn.pod_patches {
        pod.merge_from(patch.clone());
    }
    pod.status = None;
    let defaults = default_resources::from_spawn(spawn);
    let containers = pod
        .spec
        .iter_mut()
        .flat_map(|spec| spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten()));
    containers.for_each(|container| default_resources::apply(container, &defaults));
    baseline::apply(&mut pod, spawn);
    pod
}

fn spec(spawn: &ValidatedSpawn) -> PodSpec {
    let config = &spawn.config;
    let pull_secret = spawn
        .pull_secret
        .as_ref()
        .map(|_| vec![LocalObjectReference { name: spawn.names.pull_secret.to_string() }]);
    PodSpec {
        containers: vec![lab_container::build(spawn)],
        init_containers: init_containers(spawn),
        volumes: Some(volume::volumes(spawn)),
        image_pull_secrets: pull_secret,
        node_selector: (!spawn.node_selector.is_empty()).then(|| spawn.node_selector.clone()),
        affinity: scheduling::affinity(spawn.affinity),
        tolerations: scheduling::tolerations(&spawn.tolerations),
        resource_claims: resources::pod_claims(spawn),
        // A lab that was killed for its memory use restarts under the same URL. This is KubeSpawner's default, too.
        restart_policy: Some("OnFailure".to_owned()),
        termination_grace_period_seconds: Some(config.termination_grace_period_seconds.into()),
        scheduler_name: config.scheduler_name.clone(),
        priority_class_name: config.priority_class_name.clone(),
        runtime_class_name: config.runtime_class_name.clone(),
        ..PodSpec::default()
    }
}

fn init_containers(spawn: &ValidatedSpawn) -> Option<Vec<Container>> {
    let containers: Vec<_> =
        spawn.init_containers.iter().map(|init| init_container::build(init, spawn)).collect();
    (!containers.is_empty()).then_some(containers)
}

fn below(
    theirs: &BTreeMap<String, String>,
    ours: Option<BTreeMap<String, String>>,
) -> BTreeMap<String, String> {
    let mut all = theirs.clone();
    all.extend(ours.unwrap_or_default());
    all
}
