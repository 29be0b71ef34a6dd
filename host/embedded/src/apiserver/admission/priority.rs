//! How important a pod is (admission plugin `Priority`).

use crate::apiserver::failure::Failure;
use crate::apiserver::metadata::{self, Document, member};
use crate::apiserver::resource::Resource;
use crate::apiserver::store::{Key, State};
use serde_json::{Value, json};

const FIELDS: [&str; 2] = ["priority", "preemptionPolicy"];

/// Sets what the pod's class says; 403 when there is no such class.
pub(super) fn apply_class(resource: &Resource, pod: &mut Document, state: &State) -> Result<(), Failure> {
    let class = pod.get("spec").and_then(|spec| spec.get("priorityClassName")).and_then(Value::as_str);
    let known = state.get("priorityclasses.scheduling.k8s.io", &Key::new("", class.unwrap_or_default()));
    let (priority, preemption) = match (class, known) {
        (None | Some(""), _) => (json!(0), None),
        (Some("system-cluster-critical"), _) => (json!(2_000_000_000), None),
        (Some("system-node-critical"), _) => (json!(2_000_001_000), None),
        (Some(_), Some(known)) => (
            known.document().get("value").cloned().unwrap_or_else(|| json!(0)),
            known.document().get("preemptionPolicy").cloned(),
        ),
        (Some(class), None) => {
            let why = format!("no PriorityClass with name {class} was found");
            return Err(resource.forbidden(metadata::name(pod), &why));
        }
    };
    let spec = member(pod, "spec");
    spec.insert("priority".to_owned(), priority);
    let preemption = preemption.unwrap_or_else(|| json!("PreemptLowerPriority"));
    spec.entry("preemptionPolicy").or_insert(preemption);
    Ok(())
}

/// A change that does not mention it leaves it as it is.
pub(super) fn keep(new: &mut Document, old: &Document) {
    for field in FIELDS {
        if let Some(value) = old.get("spec").and_then(|spec| spec.get(field)) {
            member(new, "spec").entry(field).or_insert_with(|| value.clone());
        }
    }
}
