//! The removal of a lab from a workload.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{PodTemplateSpec, Volume};
use serde_json::{Value, json};

use super::object::{labs, taken_volumes};
use super::{LabMark, Workload};
use crate::names::labels::JOB_ID_LABEL;

/// Returns the object to apply under the lab's field manager in order to remove the lab from the workload with this uid
/// and template. Of the lab, the object contains only the volumes that containers of others mount, because the API
/// server refuses to remove those.
pub fn remainder(workload: &Workload, uid: &str, template: &PodTemplateSpec, mark: &LabMark) -> Value {
    let mut applied = json!({
        "apiVersion": "apps/v1",
        "kind": workload.kind.kind(),
        "metadata": { "name": workload.name, "namespace": workload.namespace, "uid": uid },
    });
    let taken = taken_volumes(template);
    let volumes = template.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let kept: Vec<&Volume> =
        volumes.filter(|volume| mark.owns(&volume.name) && taken.contains(volume.name.as_str())).collect();
    if !kept.is_empty() {
        applied["spec"] = json!({ "template": { "spec": { "volumes": kept } } });
    }
    applied
}

/// Returns the strategic merge patch that removes the parts that remain after the apply; `None` if nothing remains.
///
/// Parts remain if somebody else has written the lab's fields too, such as with `kubectl rollout undo` to a revision
/// with the lab. A volume that a container of others mounts now belongs to that container.
pub fn leftovers(template: &PodTemplateSpec, mark: &LabMark, installation_label: &str) -> Option<Value> {
    let others = labs(template).into_keys().any(|other| other != *mark);
    let metadata = template.metadata.as_ref();
    let has_label = |key: &str| {
        metadata.and_then(|metadata| metadata.labels.as_ref()).is_some_and(|labels| labels.contains_key(key))
    };
    let has_annotation = |key: &str| {
        let annotations = metadata.and_then(|metadata| metadata.annotations.as_ref());
        annotations.is_some_and(|annotations| annotations.contains_key(key))
    };
    let own = mark.label();
    let value = |key: &str| metadata.and_then(|metadata| metadata.labels.as_ref()?.get(key));
    let is_of_own_job = value(JOB_ID_LABEL).is_some() && value(JOB_ID_LABEL) == value(&own);
    // The label of the installation stays while another lab needs it.
    let labels: Vec<&str> =
        [(own.as_str(), true), (installation_label, !others), (JOB_ID_LABEL, is_of_own_job)]
            .into_iter()
            .filter_map(|(key, goes)| (goes && has_label(key)).then_some(key))
            .collect();
    let annotations: Vec<&str> = [own.as_str()].into_iter().filter(|key| has_annotation(key)).collect();
    let spec = template.spec.as_ref();
    let names = |names: Vec<&str>| -> BTreeSet<String> {
        names.into_iter().filter(|name| mark.owns(name)).map(str::to_owned).collect()
    };
    let containers = names(
        spec.map(|spec| spec.containers.iter().map(|one| one.name.as_str()).collect()).unwrap_or_default(),
    );
    let init = names(
        spec.map(|spec| spec.init_containers.iter().flatten().map(|one| one.name.as_str()).collect())
            .unwrap_or_default(),
    );
    let mut volumes = names(
        spec.map(|spec| spec.volumes.iter().flatten().map(|one| one.name.as_str()).collect())
            .unwrap_or_default(),
    );
    let taken = taken_volumes(template);
    volumes.retain(|name| !taken.contains(name.as_str()));
    let pull_secrets = names(
        spec.map(|spec| spec.image_pull_secrets.iter().flatten().map(|one| one.name.as_str()).collect())
            .unwrap_or_default(),
    );
    if labels.is_empty()
        && annotations.is_empty()
        && containers.is_empty()
        && init.is_empty()
        && volumes.is_empty()
        && pull_secrets.is_empty()
    {
        return None;
    }
    let removed = |names: BTreeSet<String>| -> Vec<Value> {
        names.into_iter().map(|name| json!({ "$patch": "delete", "name": name })).collect()
    };
    let absent =
        |keys: Vec<&str>| -> Value { keys.into_iter().map(|key| (key.to_owned(), Value::Null)).collect() };
    Some(json!({ "spec": { "template": {
        "metadata": { "labels": absent(labels), "annotations": absent(annotations) },
        "spec": {
            "containers": removed(containers), "initContainers": removed(init), "volumes": removed(volumes),
            "imagePullSecrets": removed(pull_secrets),
        },
    } } }))
}

/// Returns true for the template of an earlier revision with the lab: a rollback to it would bring back a lab whose
/// Secret is gone.
pub fn is_leftover_revision(template: &PodTemplateSpec, mark: &LabMark) -> bool {
    labs(template).contains_key(mark)
}
