//! Rules of pods.

use super::json::{items, text};
use super::{container, placement, volume};
use crate::apiserver::failure::Cause;
use crate::apiserver::metadata::Document;
use serde_json::Value;
use std::collections::HashSet;

/// Rules that hold for every pod.
pub(super) fn of(pod: &Document) -> Vec<Cause> {
    let Some(spec) = pod.get("spec").and_then(Value::as_object) else {
        return vec![Cause::required("spec.containers", "")];
    };
    let mut causes = Vec::new();
    let volumes = volume::check_all(spec, &mut causes);
    let mut seen = HashSet::new();
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for (i, container) in items(spec.get(list)).enumerate() {
            let path = format!("spec.{list}[{i}]");
            let name = text(container, "name");
            if !name.is_empty() && !seen.insert(name.to_owned()) {
                causes.push(Cause::duplicate(format!("{path}.name"), name));
            }
            container::check(container, &path, &volumes, &mut causes);
        }
    }
    if items(spec.get("containers")).next().is_none() {
        causes.push(Cause::required("spec.containers", ""));
    }
    if let Some(policy) = spec.get("restartPolicy").and_then(Value::as_str)
        && !matches!(policy, "Always" | "OnFailure" | "Never")
    {
        causes.push(Cause::unsupported("spec.restartPolicy", policy, &["Always", "Never", "OnFailure"]));
    }
    placement::check(spec, &mut causes);
    causes
}

/// Of a pod's spec, only a few fields may change.
pub(super) fn of_update(new: &Document, old: &Document) -> Vec<Cause> {
    let tolerations = |pod: &Document| -> Vec<Value> {
        items(pod.get("spec").and_then(|spec| spec.get("tolerations"))).cloned().collect()
    };
    let (before, after) = (tolerations(old), tolerations(new));
    let added_only = before.iter().all(|toleration| after.contains(toleration));
    if fixed(new) == fixed(old) && added_only {
        return Vec::new();
    }
    let why = "pod updates may not change fields other than `spec.containers[*].image`,\
               `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to \
               existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
               previously negative)";
    vec![Cause::forbidden("spec", why)]
}

/// The part of a spec that may not change.
fn fixed(pod: &Document) -> Value {
    let mut spec = pod.get("spec").cloned().unwrap_or_default();
    if let Value::Object(map) = &mut spec {
        map.remove("activeDeadlineSeconds");
        map.remove("tolerations");
        map.remove("schedulingGates");
    }
    for list in ["containers", "initContainers"] {
        if let Some(Value::Array(containers)) = spec.get_mut(list) {
            for container in containers.iter_mut().filter_map(Value::as_object_mut) {
                container.remove("image");
            }
        }
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::{of, of_update};
    use serde_json::{Value, json};

    fn fields(spec: &Value) -> Vec<String> {
        of(json!({"spec": spec}).as_object().unwrap()).into_iter().map(|cause| cause.field).collect()
    }

    #[test]
    fn a_small_pod_is_fine() {
        let spec = json!({"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}}], "volumes": [{"name": "v"}]});
        assert_eq!(fields(&spec), Vec::<String>::new());
    }

    #[test]
    fn what_is_wrong_is_told_field_by_field() {
        for (spec, expected) in [
            (json!({}), "spec.containers"),
            (json!({"containers": []}), "spec.containers"),
            (json!({"containers": [{"image": "i"}]}), "spec.containers[0].name"),
            (json!({"containers": [{"name": "A", "image": "i"}]}), "spec.containers[0].name"),
            (json!({"containers": [{"name": "a"}]}), "spec.containers[0].image"),
            (
                json!({"containers": [{"name": "a", "image": "i"}, {"name": "a", "image": "i"}]}),
                "spec.containers[1].name",
            ),
            (
                json!({"containers": [{"name": "a", "image": "i", "volumeMounts": [{"name": "x", "mountPath": "/"}]}]}),
                "spec.containers[0].volumeMounts[0].name",
            ),
            (
                json!({"containers": [{"name": "a", "image": "i", "env": [{"name": "A=B"}]}]}),
                "spec.containers[0].env[0].name",
            ),
            (
                json!({"containers": [{"name": "a", "image": "i", "resources": {"limits": {"cpu": "lots"}}}]}),
                "spec.containers[0].resources.limits[cpu]",
            ),
            (
                json!({"containers": [{"name": "a", "image": "i", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}]}),
                "spec.containers[0].resources.requests",
            ),
            (
                json!({"containers": [{"name": "a", "image": "i"}], "volumes": [{"name": "v"}, {"name": "v"}]}),
                "spec.volumes[1].name",
            ),
            (
                json!({"containers": [{"name": "a", "image": "i"}], "restartPolicy": "Maybe"}),
                "spec.restartPolicy",
            ),
        ] {
            assert_eq!(fields(&spec), [expected], "{spec}");
        }
    }

    #[test]
    fn a_pod_may_change_its_images_only() {
        let pod = |image: &str, node: &str| json!({"spec": {"nodeName": node, "containers": [{"name": "a", "image": image}]}});
        let (old, image, node) = (pod("i", ""), pod("j", ""), pod("i", "n"));
        assert!(of_update(image.as_object().unwrap(), old.as_object().unwrap()).is_empty());
        assert_eq!(of_update(node.as_object().unwrap(), old.as_object().unwrap())[0].field, "spec");
    }
}
