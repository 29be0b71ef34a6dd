//! Taking a lab out of a workload.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{PodTemplateSpec, Volume};
use serde_json::{Value, json};

use super::object::{labs, taken_volumes};
use super::{LabMark, Workload};

/// What is applied under the lab's field manager to take the lab out of the workload with this uid and template: of the lab,
/// only the volumes that containers of others mount. The API server lets nobody remove those.
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

/// The strategic merge patch that removes what an apply of nothing has left; `None` if it has left nothing.
///
/// Something is left where somebody else has written the lab's fields too, such as with `kubectl rollout undo` to a
/// revision with the lab. A volume that a container of others mounts is theirs by now.
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
    // The label of the installation stays while another lab needs it.
    let labels: Vec<&str> = [(own.as_str(), true), (installation_label, !others)]
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

/// True for the template of an earlier revision with the lab: a rollback to it would bring back a lab whose Secret is gone.
pub fn is_leftover_revision(template: &PodTemplateSpec, mark: &LabMark) -> bool {
    labs(template).contains_key(mark)
}
