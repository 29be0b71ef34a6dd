//! Strategic merge patch: lists of objects merge by key, and directives say what to take away (Kubernetes
//! documentation, "Update API objects in place using kubectl patch"). The order that a client wants for such a list
//! (`$setElementOrder`) is not followed: new items are added at the end.

use super::failure::Failure;
use super::metadata::{self, Document};
use serde_json::Value;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_SCALARS: &str = "$deleteFromPrimitiveList/";

/// How a list merges.
#[derive(Clone, Copy)]
enum Merge {
    /// Replaced as a whole.
    Whole,
    /// Scalars, each at most once.
    Set,
    /// Objects, told apart by this field.
    By(&'static str),
}

/// How the list `field` of the object in `parent` merges (`patchStrategy` and `patchMergeKey` of the Kubernetes API).
///
/// `k8s_openapi::DeepMerge` knows it too, in its types, but can neither remove a field nor follow a directive. A test
/// compares the two.
fn merge_of(parent: &str, field: &str) -> Merge {
    match (parent, field) {
        ("metadata", "ownerReferences") => Merge::By("uid"),
        ("metadata", "finalizers") => Merge::Set,
        (
            _,
            "containers"
            | "initContainers"
            | "ephemeralContainers"
            | "volumes"
            | "env"
            | "resourceClaims"
            | "schedulingGates",
        )
        | ("spec", "imagePullSecrets")
        | ("", "secrets")
        | ("resources", "claims") => Merge::By("name"),
        (_, "volumeMounts") => Merge::By("mountPath"),
        (_, "volumeDevices") => Merge::By("devicePath"),
        (_, "topologySpreadConstraints") => Merge::By("topologyKey"),
        ("containers" | "initContainers" | "ephemeralContainers", "ports") => Merge::By("containerPort"),
        ("status", "conditions" | "addresses") => Merge::By("type"),
        ("spec", "hostAliases") | ("status", "podIPs") => Merge::By("ip"),
        _ => Merge::Whole,
    }
}

/// Lays `patch` over `target`, the object in the field `parent` (`""` for the whole object).
pub(super) fn merge(target: &mut Document, patch: &Document, parent: &str) -> Result<(), Failure> {
    match patch.get(DIRECTIVE).and_then(Value::as_str) {
        None | Some("merge") => {}
        Some("replace") => {
            *target = without_directives(patch);
            return Ok(());
        }
        Some("delete") => {
            target.clear();
            return Ok(());
        }
        Some(other) => return Err(Failure::bad_request(format!("unknown patch directive {other:?}"))),
    }
    if let Some(Value::Array(kept)) = patch.get(RETAIN_KEYS) {
        target.retain(|name, _| kept.iter().any(|k| k == name));
    }
    for (name, value) in patch {
        if let Some(list) = name.strip_prefix(DELETE_SCALARS) {
            if let (Some(Value::Array(items)), Value::Array(gone)) = (target.get_mut(list), value) {
                items.retain(|item| !gone.contains(item));
            }
        } else if !name.starts_with('$') {
            merge_field(target, name, value, parent)?;
        }
    }
    Ok(())
}

fn merge_field(target: &mut Document, name: &str, value: &Value, parent: &str) -> Result<(), Failure> {
    match value {
        Value::Null => {
            target.remove(name);
        }
        Value::Object(patch) => merge(metadata::member(target, name), patch, name)?,
        Value::Array(patch) => {
            let list = target.entry(name).or_insert(Value::Null);
            if !list.is_array() {
                *list = Value::Array(Vec::new());
            }
            if let Value::Array(items) = list {
                merge_list(items, patch, name, merge_of(parent, name))?;
            }
        }
        scalar => {
            target.insert(name.to_owned(), scalar.clone());
        }
    }
    Ok(())
}

fn merge_list(items: &mut Vec<Value>, patch: &[Value], name: &str, how: Merge) -> Result<(), Failure> {
    match how {
        Merge::Whole => *items = patch.to_vec(),
        Merge::Set => {
            let new: Vec<_> = patch.iter().filter(|value| !items.contains(value)).cloned().collect();
            items.extend(new);
        }
        Merge::By(key) => merge_by_key(items, patch, name, key)?,
    }
    Ok(())
}

fn merge_by_key(items: &mut Vec<Value>, patch: &[Value], list: &str, key: &str) -> Result<(), Failure> {
    let directive = |item: &Value| item.get(DIRECTIVE).and_then(Value::as_str).map(str::to_owned);
    if patch.iter().any(|item| directive(item).as_deref() == Some("replace")) {
        items.clear();
    }
    for value in patch {
        let directive = directive(value);
        let (Value::Object(item), Some(id)) = (value, value.get(key)) else {
            if directive.as_deref() == Some("replace") {
                continue;
            }
            let why = format!("map: {value} does not contain declared merge key: {key}");
            return Err(Failure::bad_request(why));
        };
        let found = items.iter().position(|existing| existing.get(key) == Some(id));
        match (directive.as_deref(), found) {
            (Some("delete"), Some(at)) => {
                items.remove(at);
            }
            (Some("delete"), None) => {}
            (_, Some(at)) => {
                if let Value::Object(existing) = &mut items[at] {
                    merge(existing, item, list)?;
                }
            }
            (_, None) => {
                let mut fresh = Document::new();
                merge(&mut fresh, item, list)?;
                items.push(Value::Object(fresh));
            }
        }
    }
    Ok(())
}

fn without_directives(patch: &Document) -> Document {
    patch.iter().filter(|(name, _)| !name.starts_with('$')).map(|(n, v)| (n.clone(), v.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::merge;
    use k8s_openapi::DeepMerge;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    fn merged(target: &Value, patch: &Value) -> Value {
        let mut target = target.as_object().unwrap().clone();
        merge(&mut target, patch.as_object().unwrap(), "").unwrap();
        Value::Object(target)
    }

    fn pod() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "labels": {"a": "1", "b": "2"}, "finalizers": ["x/y"]},
            "spec": {
                "containers": [
                    {"name": "one", "image": "i:1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                     "args": ["x", "y"], "ports": [{"containerPort": 80, "name": "web"}]},
                    {"name": "two", "image": "j:1", "volumeMounts": [{"mountPath": "/a", "name": "v"}]}],
                "volumes": [{"name": "v", "emptyDir": {}}],
                "tolerations": [{"key": "k", "operator": "Exists"}],
            },
        })
    }

    #[test]
    fn lists_merge_as_the_types_of_kubernetes_say() {
        let patch = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"labels": {"b": "3"}, "finalizers": ["z/w"]},
            "spec": {
                "containers": [
                    {"name": "one", "image": "i:2", "env": [{"name": "B", "value": "9"}, {"name": "C"}], "args": ["z"],
                     "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 81}]},
                    {"name": "three", "image": "k"}],
                "tolerations": [],
                "hostAliases": [{"ip": "1.2.3.4"}],
            },
        });
        let mut typed: Pod = serde_json::from_value(pod()).unwrap();
        typed.merge_from(serde_json::from_value(patch.clone()).unwrap());
        // The types key ports by protocol too, as apply does, and have no default for it.
        let ours: Pod = serde_json::from_value(merged(&pod(), &patch)).unwrap();
        assert_eq!(ours, typed);
    }

    #[test]
    fn directives_take_away_and_replace() {
        let patch = json!({
            "metadata": {"labels": {"a": null}, "$deleteFromPrimitiveList/finalizers": ["x/y"]},
            "spec": {
                "containers": [{"name": "one", "env": [{"$patch": "replace"}, {"name": "Z"}]}],
                "volumes": [
                    {"name": "v", "$patch": "delete"},
                    {"name": "w", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}}],
            },
        });
        let result = merged(&pod(), &patch);
        assert_eq!(result["metadata"], json!({"name": "a", "labels": {"b": "2"}, "finalizers": []}));
        assert_eq!(result["spec"]["containers"][0]["env"], json!([{"name": "Z"}]));
        assert_eq!(result["spec"]["volumes"], json!([{"name": "w", "emptyDir": {}}]));
    }
}
