//! The default values of fields that a client does not set (Kubernetes API reference).

use crate::apiserver::metadata::{Document, member};
use crate::apiserver::resource::Resource;
use crate::apiserver::schema;
use serde_json::{Value, json};

/// Sets the defaults of the object's kind.
pub(super) fn set_defaults(resource: &Resource, object: &mut Document) {
    schema::set_defaults(object, &resource.schema);
    if resource.is_core("pods") {
        pod(member(object, "spec"));
    } else if resource.is_core("resourcequotas") {
        let hard = object.get("spec").and_then(|spec| spec.get("hard")).cloned();
        member(object, "status").extend(hard.map(|hard| ("hard".to_owned(), hard)));
    }
}

/// Applies `set` to each object in a list.
pub(super) fn each(map: &mut Document, list: &str, set: impl Fn(&mut Document)) {
    let items = map.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
    items.filter_map(Value::as_object_mut).for_each(set);
}

/// Copies the members of one map to another, unless the other already has a member of that name.
pub(super) fn copy_missing(object: &mut Document, from: &str, to: &str) {
    let values = object.get(from).and_then(Value::as_object).cloned();
    for (name, value) in values.into_iter().flatten() {
        member(object, to).entry(name).or_insert(value);
    }
}

fn pod(spec: &mut Document) {
    let account = spec.get("serviceAccountName").or_else(|| spec.get("serviceAccount"));
    let account = account.cloned().unwrap_or_else(|| json!("default"));
    spec.entry("serviceAccountName").or_insert_with(|| account.clone());
    spec.entry("serviceAccount").or_insert(account);
    for list in ["containers", "initContainers"] {
        each(spec, list, |container| {
            let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
            let policy = if is_latest(image) { "Always" } else { "IfNotPresent" };
            container.entry("imagePullPolicy").or_insert(json!(policy));
            copy_missing(member(container, "resources"), "limits", "requests");
        });
    }
    each(spec, "volumes", |volume| {
        if volume.len() == 1 {
            volume.insert("emptyDir".to_owned(), json!({}));
        }
    });
    tolerate_short_failures(spec);
}

/// Lets pods stay for five minutes on nodes that do not report, unless their spec sets another time (admission plugin
/// `DefaultTolerationSeconds`).
fn tolerate_short_failures(spec: &mut Document) {
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Some(tolerations) = tolerations.as_array_mut() else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations.iter().any(|toleration| {
            let text = |field| toleration.get(field).and_then(Value::as_str).unwrap_or_default();
            (text("key") == key || text("key").is_empty()) && matches!(text("effect"), "NoExecute" | "")
        });
        if !tolerated {
            tolerations.push(
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
            );
        }
    }
}

/// True if an image has no tag, or the tag that means "the newest".
fn is_latest(image: &str) -> bool {
    let last = image.rsplit('/').next().unwrap_or_default();
    !image.contains('@') && last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}
