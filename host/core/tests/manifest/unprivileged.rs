//! Privileges that no pod has without grants.

use serde_json::Value;
use wasmspawner_core::manifest::LabObjects;

/// Checks every container of the pod. The error names the forbidden privilege.
pub(crate) fn check_unprivileged(objects: &LabObjects) -> Result<(), String> {
    let pod = serde_json::to_value(&objects.pod).map_err(|error| error.to_string())?;
    let all = |name: &str| {
        let mut found = Vec::new();
        fields(&pod, name, &mut found);
        found
    };
    for (name, allowed) in [
        ("privileged", None),
        ("hostPath", None),
        ("hostNetwork", None),
        ("hostPID", None),
        ("hostPort", None),
        ("allowPrivilegeEscalation", Some(Value::Bool(false))),
        ("automountServiceAccountToken", Some(Value::Bool(false))),
        ("runAsNonRoot", Some(Value::Bool(true))),
        ("runAsUser", Some(Value::from(1000))),
        ("drop", Some(serde_json::json!(["ALL"]))),
        ("add", None),
    ] {
        if let Some(found) = all(name).into_iter().find(|found| Some(*found) != allowed.as_ref()) {
            return Err(format!("{name} is {found}"));
        }
    }
    let spec = objects.pod.spec.as_ref().ok_or("the pod has no spec")?;
    let containers = spec.containers.len() + spec.init_containers.as_ref().map_or(0, Vec::len);
    if all("drop").len() == containers {
        Ok(())
    } else {
        Err("a container keeps its capabilities".to_owned())
    }
}

/// Every field of this name anywhere in an object.
fn fields<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(entries) => {
            found.extend(entries.get(name));
            entries.values().for_each(|value| fields(value, name, found));
        }
        Value::Array(items) => items.iter().for_each(|value| fields(value, name, found)),
        _ => {}
    }
}
