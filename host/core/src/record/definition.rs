//! The `CustomResourceDefinition` of records, generated from their types.

use serde_json::{Value, json};

use super::{SpawnSpec, SpawnStatus};
use crate::custom_resource::api_group::{GROUP, VERSION};
use crate::custom_resource::structural_schema::{examples, structural_schema};

/// The kind of records.
pub const KIND: &str = "Spawn";
/// The kind's name in URLs.
pub const PLURAL: &str = "spawns";
/// The finalizer that turns `kubectl delete spawn` into a stop of the lab.
pub const FINALIZER: &str = "wasmspawner.io/stop";

/// Returns records that together have every field and every enum value that this version of the service may write. They
/// name no spawn: they are for finding out whether the definition in a cluster takes them.
pub fn complete_records() -> Vec<Value> {
    examples(&schema())
}

/// Returns the definition to install in a cluster.
///
/// The definition has no `status` subresource: the service is the only writer, and has to change `spec` and `status` in
/// one write.
pub fn definition() -> Value {
    let column = |name: &str, path: &str, description: &str| json!({"name": name, "type": "string", "jsonPath": path, "description": description});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{PLURAL}.{GROUP}") },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": format!("{KIND}List"),
                "plural": PLURAL,
                "singular": "spawn",
                "shortNames": ["sp"],
            },
            "versions": [{
                "name": VERSION,
                "served": true,
                "storage": true,
                "additionalPrinterColumns": [
                    column("Kind", ".spec.kind", "What was spawned"),
                    column("User", ".spec.user", "Whose it is"),
                    column("Name", ".spec.name", "The server, kernel or pool; empty for the default server"),
                    column("Status", ".status.status", "Where in its life it is"),
                    column("Stage", ".status.stage", "The stage that belongs to that"),
                    { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
                ],
                "schema": { "openAPIV3Schema": schema() },
            }],
        },
    })
}

/// Returns the schema of `spec`. Kubernetes itself refuses what an earlier leader writes after a later one. A version
/// without Leases, after a rollback, writes none.
fn spec_schema() -> Value {
    let mut schema = structural_schema::<SpawnSpec>();
    schema["x-kubernetes-validations"] = json!([{
        "rule": "!has(oldSelf.epoch) || !has(self.epoch) || self.epoch >= oldSelf.epoch",
        "message": "a later leader has written this",
    }]);
    schema
}

fn schema() -> Value {
    json!({
        "type": "object",
        "description": "What the wasmspawner service has started for a user, and what became of it. Deleting it stops that.",
        "required": ["spec"],
        "properties": {
            "spec": spec_schema(),
            "status": structural_schema::<SpawnStatus>(),
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::custom_resource::structural_schema::assert_structural;

    #[test]
    fn the_schema_is_structural() {
        let definition = definition();
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        assert_structural(schema, "");
        assert_eq!(
            schema["properties"]["spec"]["properties"]["desired"]["enum"],
            json!(["Running", "Stopped"])
        );
        assert_eq!(
            schema["properties"]["status"]["properties"]["status"]["enum"],
            json!(["starting", "running", "terminating", "failed"])
        );
    }

    /// Adds the path of each field, and of each enum value.
    fn note(value: &Value, path: &str, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                for (name, inner) in fields {
                    note(inner, &format!("{path}.{name}"), found);
                }
            }
            Value::Array(items) => {
                for item in items {
                    note(item, &format!("{path}[]"), found);
                }
            }
            Value::String(word) => drop(found.insert(format!("{path}={word}"))),
            _ => {}
        }
        found.insert(path.to_owned());
    }

    /// Adds what a schema allows in the same way.
    fn note_schema(schema: &Value, path: &str, allowed: &mut BTreeSet<String>) {
        allowed.insert(path.to_owned());
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            note_schema(inner, &format!("{path}.{name}"), allowed);
        }
        if let Some(inner) = schema.get("items") {
            note_schema(inner, &format!("{path}[]"), allowed);
        }
        if let Some(inner) = schema.get("additionalProperties") {
            note_schema(inner, &format!("{path}.key"), allowed);
        }
        let words = schema["enum"].as_array().into_iter().flatten();
        allowed.extend(words.map(|word| format!("{path}={}", word.as_str().unwrap())));
    }

    #[test]
    fn the_complete_records_have_all_that_the_definition_allows() {
        let (mut found, mut allowed) = (BTreeSet::new(), BTreeSet::new());
        note_schema(&schema(), "", &mut allowed);
        let records = complete_records();
        for record in &records {
            note(record, "", &mut found);
        }
        found.retain(|path| !path.ends_with("=text"));
        assert_eq!(found, allowed);
        assert!(found.contains(".status.stage=Unknown") && found.contains(".spec.place.claim.fate=Shared"));
        assert!((8..=20).contains(&records.len()), "{} records", records.len());
    }
}
