//! The names of claims in volumes.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::draft::Draft;

/// KubeSpawner's `pvc_name_template`, where a site sets none.
const USUAL: &str = "claim-{user_server}";

/// Writes `{pvc_name}` wherever volumes have the template of the lab's own claim, so that the service knows the claim, makes
/// it if it is not there, and remembers its name.
pub(crate) fn own(draft: &mut Draft<'_>) {
    let template = draft.service["names"]["pvc"].as_str().unwrap_or(USUAL).to_owned();
    let mut others = BTreeSet::new();
    let mut settings = Value::Object(std::mem::take(&mut draft.kubespawner));
    let mut policy = Value::Object(std::mem::take(&mut draft.policy));
    for part in [&mut settings, &mut policy] {
        each(part, &mut |claim| {
            let name = claim.get("claimName").and_then(Value::as_str).unwrap_or_default();
            if name == template {
                claim.insert("claimName".to_owned(), "{pvc_name}".into());
            } else if name.contains('{') && !name.contains("{pvc_name}") {
                others.insert(name.to_owned());
            }
        });
    }
    let makes_claims = settings.get("storage_pvc_ensure") == Some(&Value::Bool(true));
    let into = |value| match value {
        Value::Object(entries) => entries,
        _ => Map::new(),
    };
    (draft.kubespawner, draft.policy) = (into(settings), into(policy));
    for name in others.iter().filter(|_| makes_claims) {
        draft.open(
            &format!("persistentVolumeClaim.claimName: {name}"),
            &format!("is not the claim that KubeSpawner made for each lab, whose template was `{template}`"),
            "It is mounted by the name that its template gives; write `{pvc_name}` there and the template to `names.pvc` if it is \
             the home that the service has to make",
        );
    }
}

/// Visits the claims of all volumes.
fn each(value: &mut Value, visit: &mut dyn FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| each(item, visit)),
        Value::Object(entries) => {
            for (key, value) in entries {
                match value {
                    Value::Object(claim) if key == "persistentVolumeClaim" => visit(claim),
                    value => each(value, visit),
                }
            }
        }
        _ => {}
    }
}
