//! Does a pod fit on the one node? The messages are those of the Kubernetes scheduler.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, PodSpec};

/// Why the node's labels do not suit the pod; `None` when they do.
///
/// Resources are never counted: the one machine is overcommitted rather than left unused.
pub(crate) fn misfit(spec: &PodSpec, labels: &BTreeMap<String, String>) -> Option<&'static str> {
    const SELECTOR: &str = "1 node(s) didn't match Pod's node affinity/selector";
    let selected = spec.node_selector.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    let required = spec.affinity.as_ref().and_then(|affinity| {
        affinity.node_affinity.as_ref()?.required_during_scheduling_ignored_during_execution.as_ref()
    });
    let allowed = required
        .is_none_or(|selector| selector.node_selector_terms.iter().any(|term| term_holds(term, labels)));
    (!(selected && allowed)).then_some(SELECTOR)
}

/// The whole message of a `FailedScheduling` event and of the `PodScheduled` condition.
pub(crate) fn unschedulable_message(reason: &str) -> String {
    let help = if reason.contains("Insufficient") {
        "1 No preemption victims found for incoming pod"
    } else {
        "1 Preemption is not helpful for scheduling"
    };
    format!("0/1 nodes are available: {reason}. preemption: 0/1 nodes are available: {help}.")
}

fn term_holds(term: &NodeSelectorTerm, labels: &BTreeMap<String, String>) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    !expressions.is_empty() && expressions.iter().all(|requirement| holds(requirement, labels))
}

fn holds(requirement: &NodeSelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let value = labels.get(&requirement.key);
    let values = requirement.values.as_deref().unwrap_or_default();
    let compared = || Some((value?.parse::<i64>().ok()?, values.first()?.parse::<i64>().ok()?));
    match requirement.operator.as_str() {
        "In" => value.is_some_and(|value| values.contains(value)),
        "NotIn" => value.is_none_or(|value| !values.contains(value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared().is_some_and(|(own, bound)| own > bound),
        "Lt" => compared().is_some_and(|(own, bound)| own < bound),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fits(mut spec: Value) -> bool {
        spec["containers"] = json!([]);
        let labels = [("kubernetes.io/os", "linux"), ("gpus", "2")];
        let labels = labels.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        misfit(&serde_json::from_value(spec).unwrap(), &labels).is_none()
    }

    fn affinity(expressions: &Value) -> Value {
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}}})
    }

    #[test]
    fn node_selector() {
        assert!(fits(json!({})));
        assert!(fits(json!({"nodeSelector": {"kubernetes.io/os": "linux"}})));
        assert!(!fits(json!({"nodeSelector": {"kubernetes.io/os": "windows"}})));
        assert!(!fits(json!({"nodeSelector": {"missing": ""}})));
    }

    #[test]
    fn node_affinity() {
        for (key, operator, values, expect) in [
            ("gpus", "In", json!(["1", "2"]), true),
            ("gpus", "NotIn", json!(["2"]), false),
            ("zone", "NotIn", json!(["a"]), true),
            ("gpus", "Exists", json!([]), true),
            ("zone", "DoesNotExist", json!([]), true),
            ("gpus", "Gt", json!(["1"]), true),
            ("gpus", "Lt", json!(["2"]), false),
            ("gpus", "Like", json!(["2"]), false),
        ] {
            let spec = affinity(&json!([{"key": key, "operator": operator, "values": values}]));
            assert_eq!(fits(spec), expect, "{key} {operator}");
        }
        assert!(!fits(affinity(&json!([]))), "an empty term matches nothing");
    }

    #[test]
    fn messages_are_the_schedulers() {
        assert_eq!(
            unschedulable_message("1 Insufficient memory"),
            "0/1 nodes are available: 1 Insufficient memory. preemption: 0/1 nodes are available: \
             1 No preemption victims found for incoming pod."
        );
    }
}
