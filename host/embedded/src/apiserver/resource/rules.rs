//! The rules and defaults for single fields of Kubernetes' own kinds. This is a part of Kubernetes' rules: the defaults
//! of fields that labs use, and the rules without which a pod could not run.

use crate::apiserver::failure::qualified;
use serde_json::{Value, json};

/// A part of the schema for the field at a path, such as `spec.volumes[].name`.
type Rule = (String, Value);

/// Returns the schema of a kind.
pub(super) fn schema(group: &str, plural: &str) -> Value {
    let rules = match qualified(group, plural).as_str() {
        "pods" => pod(),
        "persistentvolumeclaims" => owned(vec![
            ("spec.accessModes", json!({"notEmpty": true})),
            ("spec.volumeMode", json!({"default": "Filesystem"})),
            ("spec.resources.requests", json!({"quantities": true})),
        ]),
        "secrets" => owned(vec![("type", json!({"default": "Opaque"}))]),
        "resourcequotas" => owned(vec![("spec.hard", json!({"quantities": true}))]),
        "limitranges" => ["max", "min", "default", "defaultRequest"]
            .map(|bound| (format!("spec.limits[].{bound}"), json!({"quantities": true})))
            .into(),
        _ => Vec::new(),
    };
    let mut schema = json!({});
    for (path, rule) in rules {
        place(&mut schema, &path, rule);
    }
    schema
}

/// Adds a rule to the schema of the field at its path.
fn place(schema: &mut Value, path: &str, rule: Value) {
    let mut at = schema;
    for step in path.split('.') {
        let name = step.trim_end_matches("[]");
        at = &mut at["properties"][name];
        if step != name {
            at = &mut at["items"];
        }
    }
    match (at, rule) {
        (Value::Object(known), Value::Object(more)) => known.extend(more),
        (at, rule) => *at = rule,
    }
}

fn owned(rules: Vec<(&str, Value)>) -> Vec<Rule> {
    rules.into_iter().map(|(path, rule)| (path.to_owned(), rule)).collect()
}

fn pod() -> Vec<Rule> {
    let not_empty = || json!({"notEmpty": true});
    let mut rules = owned(vec![
        ("spec.containers", not_empty()),
        ("spec.restartPolicy", json!({"enum": ["Always", "Never", "OnFailure"], "default": "Always"})),
        ("spec.dnsPolicy", json!({"default": "ClusterFirst"})),
        ("spec.schedulerName", json!({"default": "default-scheduler"})),
        ("spec.terminationGracePeriodSeconds", json!({"default": 30})),
        ("spec.enableServiceLinks", json!({"default": true})),
        ("spec.securityContext", json!({"default": {}})),
        // In Kubernetes, the admission plugin `Priority` sets this field. There are no priority classes here.
        ("spec.priority", json!({"default": 0})),
        ("spec.preemptionPolicy", json!({"default": "PreemptLowerPriority"})),
        ("spec.volumes", json!({"uniqueBy": "name"})),
        ("spec.volumes[].name", json!({"notEmpty": true, "form": "label"})),
        ("spec.volumes[].secret.defaultMode", json!({"default": 0o644})),
        ("spec.volumes[].configMap.defaultMode", json!({"default": 0o644})),
        ("spec.volumes[].hostPath.type", json!({"default": ""})),
    ]);
    let container = [
        ("name", json!({"notEmpty": true, "form": "label"})),
        ("image", not_empty()),
        ("terminationMessagePath", json!({"default": "/dev/termination-log"})),
        ("terminationMessagePolicy", json!({"default": "File"})),
        ("env[].name", not_empty()),
        ("env[].valueFrom.fieldRef.apiVersion", json!({"default": "v1"})),
        ("ports", json!({"uniqueBy": "name"})),
        ("ports[].containerPort", json!({"notEmpty": true, "minimum": 1, "maximum": 65535})),
        ("ports[].protocol", json!({"default": "TCP"})),
        ("volumeMounts[].mountPath", not_empty()),
        ("resources", json!({"default": {}})),
        ("resources.limits", json!({"quantities": true})),
        ("resources.requests", json!({"quantities": true})),
    ];
    let probe = [
        ("timeoutSeconds", json!({"default": 1})),
        ("periodSeconds", json!({"default": 10})),
        ("successThreshold", json!({"default": 1})),
        ("failureThreshold", json!({"default": 3})),
        ("httpGet.scheme", json!({"default": "HTTP"})),
        ("httpGet.path", json!({"default": "/"})),
    ];
    for list in ["spec.containers[]", "spec.initContainers[]"] {
        rules.extend(container.iter().map(|(path, rule)| (format!("{list}.{path}"), rule.clone())));
        for kind in ["readinessProbe", "startupProbe"] {
            rules.extend(probe.iter().map(|(path, rule)| (format!("{list}.{kind}.{path}"), rule.clone())));
        }
    }
    rules
}
