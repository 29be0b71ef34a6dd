//! Settings for which an answer has no field of its own. They become one patch of the pod, for which the policy needs the
//! grant `pod-patch`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use wasmspawner_sdk::Section;

/// The keys, each with the part of the patch that it becomes.
const KEYS: [(&str, Part); 16] = [
    ("privileged", Part::Lift("privileged")),
    ("uid", Part::Lift("runAsUser")),
    ("image_pull_policy", Part::Container("imagePullPolicy")),
    ("lifecycle_hooks", Part::Container("lifecycle")),
    ("extra_container_config", Part::WholeContainer),
    ("extra_containers", Part::Containers),
    ("scheduler_name", Part::Pod("/schedulerName")),
    ("service_account", Part::Pod("/serviceAccountName")),
    ("priority_class_name", Part::Pod("/priorityClassName")),
    (
        "node_affinity_preferred",
        Part::List("/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution"),
    ),
    (
        "node_affinity_required",
        Part::List("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"),
    ),
    (
        "pod_affinity_preferred",
        Part::List("/affinity/podAffinity/preferredDuringSchedulingIgnoredDuringExecution"),
    ),
    (
        "pod_affinity_required",
        Part::List("/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution"),
    ),
    (
        "pod_anti_affinity_preferred",
        Part::List("/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution"),
    ),
    (
        "pod_anti_affinity_required",
        Part::List("/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution"),
    ),
    // It counts over the others, as in KubeSpawner.
    ("extra_pod_config", Part::WholePod),
];

/// Fields that the service's security baseline decides, whatever a patch says.
const OF_THE_BASELINE: [&str; 9] = [
    "automountServiceAccountToken",
    "enableServiceLinks",
    "ephemeralContainers",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "securityContext",
    "serviceAccount",
    "serviceAccountName",
];

#[derive(Clone, Copy)]
enum Part {
    /// A field of the lab's container.
    Container(&'static str),
    /// Fields of the lab's container.
    WholeContainer,
    /// A field of the security context of the lab's container, with which a part of the baseline is lifted for
    /// administrators.
    Lift(&'static str),
    /// Containers beside that of the lab.
    Containers,
    /// A field of the pod's spec.
    Pod(&'static str),
    /// A list in the pod's spec.
    List(&'static str),
    /// Fields of the pod's spec.
    WholePod,
}

/// The settings of one override, by their key; `null` takes an earlier one away.
#[derive(Clone, Default)]
pub(super) struct PodParts(BTreeMap<&'static str, Value>);

impl PodParts {
    pub(super) fn read(entry: &mut Section<'_>) -> Self {
        let mut parts = BTreeMap::new();
        for (key, part) in KEYS {
            let value: Value = entry.optional(key).unwrap_or_default();
            if !entry.has(key) {
                continue;
            }
            if let Some(problem) = problem(part, &value) {
                entry.problem(key, problem);
            }
            parts.insert(key, value);
        }
        Self(parts)
    }

    /// The service account of labs, and nothing else.
    pub(super) fn of_account(name: String) -> Self {
        Self([("service_account", name.into())].into())
    }

    /// Adds a later override: maps are merged, where `null` takes an entry away; all other values replace earlier ones.
    pub(super) fn merge(&mut self, later: &Self) {
        for (key, value) in &later.0 {
            merge(self.0.entry(key).or_default(), value);
        }
    }

    /// All texts, each with its key.
    pub(super) fn texts(&mut self) -> Vec<(&'static str, &mut String)> {
        let mut found = Vec::new();
        for (key, value) in &mut self.0 {
            texts(key, value, &mut found);
        }
        found
    }

    /// The patch for a lab whose container has this name; `None` if nothing is set.
    pub(super) fn patch(&self, container: &str) -> Option<String> {
        let (mut spec, mut lab, mut beside) = (json!({}), Map::new(), Vec::new());
        let mut lifts = Map::new();
        for (key, part) in KEYS {
            let Some(value) = self.0.get(key).filter(|value| !is_nothing(value)) else { continue };
            match part {
                Part::Container(field) => {
                    lab.insert(field.to_owned(), value.clone());
                }
                Part::Lift(_) if *value == false => {}
                Part::Lift(field) => {
                    lifts.insert(field.to_owned(), value.clone());
                }
                Part::WholeContainer => lab.extend(fields(value)),
                Part::Containers => beside.extend(items(value)),
                Part::Pod(place) => put(&mut spec, place, value.clone()),
                Part::List(place) => put(&mut spec, place, Value::Array(items(value))),
                Part::WholePod => merge(&mut spec, &Value::Object(fields(value))),
            }
        }
        if !lifts.is_empty() {
            lab.insert("securityContext".to_owned(), Value::Object(lifts));
        }
        if !lab.is_empty() {
            lab.insert("name".to_owned(), container.into());
            beside.insert(0, Value::Object(lab));
        }
        if !beside.is_empty() {
            spec["containers"] = Value::Array(beside);
        }
        let something = spec.as_object().is_some_and(|spec| !spec.is_empty());
        something.then(|| json!({"spec": spec}).to_string())
    }
}

/// Says what is wrong with a value.
fn problem(part: Part, value: &Value) -> Option<String> {
    let kind = match part {
        Part::Container("imagePullPolicy") => {
            let known =
                matches!(value.as_str(), Some("Always" | "IfNotPresent" | "Never")) || value.is_null();
            return (!known).then(|| "must be Always, IfNotPresent or Never".to_owned());
        }
        Part::Lift("privileged") if !value.is_boolean() && !value.is_null() => "true or false",
        Part::Lift("runAsUser") if *value != 0 && !value.is_null() => {
            return Some(
                "comes from the identity provider, or from `auth.identities` of the service; only 0 can be here, for labs of \
                 administrators that run as root"
                    .to_owned(),
            );
        }
        Part::Pod(_) if !value.is_string() && !value.is_null() => "a text",
        Part::Containers | Part::List(_) if !value.is_array() && !value.is_object() && !value.is_null() => {
            "a list"
        }
        Part::Container(_) | Part::WholeContainer | Part::WholePod
            if !value.is_object() && !value.is_null() =>
        {
            "an object"
        }
        Part::WholePod | Part::WholeContainer => {
            let decided = fields(value).into_iter().map(|(key, _)| key);
            let decided = decided.into_iter().find(|key| OF_THE_BASELINE.contains(&key.as_str()))?;
            return Some(if decided.starts_with("serviceAccount") {
                format!("`{decided}` is decided by the service; write `service_account` beside it")
            } else {
                format!("`{decided}` is decided by the service (`lab.security`), and not by a policy")
            });
        }
        _ => return None,
    };
    Some(format!("must be {kind}"))
}

/// Merges as KubeSpawner merges dictionaries.
fn merge(into: &mut Value, later: &Value) {
    match (into, later) {
        (Value::Object(into), Value::Object(later)) => {
            for (key, value) in later {
                if value.is_null() {
                    into.remove(key);
                } else {
                    merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (into, later) => later.clone_into(into),
    }
}

/// The entries of a list, or the values of a map in the order of its keys.
fn items(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items.clone(),
        Value::Object(entries) => entries.values().filter(|value| !value.is_null()).cloned().collect(),
        _ => Vec::new(),
    }
}

/// The fields of an object, with Kubernetes' names: KubeSpawner also takes those of its Python client (`dns_policy`).
fn fields(value: &Value) -> Map<String, Value> {
    let entries = value.as_object().into_iter().flatten();
    entries.map(|(key, value)| (camel_case(key), value.clone())).collect()
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_').filter(|word| !word.is_empty());
    let mut out = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        out.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        out.push_str(letters.as_str());
    }
    out
}

fn put(spec: &mut Value, place: &str, value: Value) {
    let mut at = spec;
    for step in place.split('/').skip(1) {
        at = &mut at[step];
    }
    *at = value;
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn texts<'a>(key: &'static str, value: &'a mut Value, found: &mut Vec<(&'static str, &'a mut String)>) {
    match value {
        Value::String(text) => found.push((key, text)),
        Value::Array(items) => items.iter_mut().for_each(|item| texts(key, item, found)),
        Value::Object(entries) => entries.values_mut().for_each(|value| texts(key, value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::PodParts;

    fn parts(given: &[Value]) -> PodParts {
        let mut all = PodParts::default();
        for value in given {
            let (read, _) = wasmspawner_sdk::config::check(&value.to_string(), PodParts::read).unwrap();
            all.merge(&read);
        }
        all
    }

    fn patch(given: &[Value]) -> Value {
        parts(given).patch("notebook").map_or(Value::Null, |text| serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn settings_become_one_patch() {
        assert_eq!(patch(&[]), Value::Null);
        assert_eq!(
            patch(&[json!({"image_pull_policy": null, "extra_containers": [], "extra_pod_config": {}})]),
            Value::Null
        );
        let found = patch(&[
            json!({
                "image_pull_policy": "Always",
                "extra_containers": {"b": {"name": "side", "image": "side:1"}},
                "extra_pod_config": {"dns_policy": "None", "hostAliases": []},
                "node_affinity_required": [{"matchExpressions": []}]
            }),
            json!({"image_pull_policy": "IfNotPresent", "extra_pod_config": {"hostAliases": null, "priority": 7}}),
        ]);
        let expected = json!({"spec": {
            "containers": [{"name": "notebook", "imagePullPolicy": "IfNotPresent"}, {"name": "side", "image": "side:1"}],
            "dnsPolicy": "None",
            "priority": 7,
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": []}]
            }}}
        }});
        assert_eq!(found, expected);
    }

    #[test]
    fn labs_of_administrators_ask_for_what_is_lifted() {
        let of = |context: Value| json!({"spec": {"containers": [{"name": "notebook", "securityContext": context}]}});
        assert_eq!(
            patch(&[json!({"privileged": true, "uid": 0})]),
            of(json!({"privileged": true, "runAsUser": 0}))
        );
        assert_eq!(
            patch(&[json!({"privileged": true, "uid": 0}), json!({"privileged": false})]),
            of(json!({"runAsUser": 0}))
        );
        assert_eq!(patch(&[json!({"privileged": false, "uid": null})]), Value::Null);
    }

    #[test]
    fn a_list_takes_the_place_of_an_earlier_one() {
        let one = |name: &str| json!({"extra_containers": [{"name": name}]});
        assert_eq!(patch(&[one("a"), one("b")]), json!({"spec": {"containers": [{"name": "b"}]}}));
        assert_eq!(patch(&[one("a"), json!({"extra_containers": null})]), Value::Null);
    }

    #[test]
    fn what_the_service_decides_is_refused() {
        for (given, says) in [
            (json!({"privileged": "yes"}), "must be true or false"),
            (json!({"uid": 1000}), "comes from the identity provider"),
            (json!({"extra_pod_config": {"hostNetwork": true}}), "`hostNetwork` is decided by the service"),
            (json!({"extra_pod_config": {"service_account_name": "x"}}), "`serviceAccountName` is decided"),
            (json!({"extra_container_config": {"securityContext": {}}}), "`securityContext` is decided"),
            (json!({"image_pull_policy": "always"}), "must be Always"),
            (json!({"lifecycle_hooks": []}), "must be an object"),
            (json!({"extra_containers": "x"}), "must be a list"),
            (json!({"scheduler_name": 1}), "must be a text"),
        ] {
            let found =
                wasmspawner_sdk::config::check(&given.to_string(), |entry| drop(PodParts::read(entry)));
            let message = found.unwrap_err().remove(0).message;
            assert!(message.contains(says), "{given}: {message}");
        }
    }
}
