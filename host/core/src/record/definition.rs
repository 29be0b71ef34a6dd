//! The `CustomResourceDefinition` of records, generated from their types.

use serde_json::{Value, json};

use super::{SpawnSpec, SpawnStatus};
use crate::custom_resource::api_group::{GROUP, VERSION};
use crate::custom_resource::structural_schema::structural_schema;

/// The kind of records.
pub const KIND: &str = "Spawn";
/// The kind's name in URLs.
pub const PLURAL: &str = "spawns";
/// The finalizer that turns `kubectl delete spawn` into a stop of the lab.
pub const FINALIZER: &str = "wasmspawner.io/stop";

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
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "description": "What the wasmspawner service has started for a user, and what became of it. Deleting it stops that.",
                    "required": ["spec"],
                    "properties": { "spec": structural_schema::<SpawnSpec>(), "status": structural_schema::<SpawnStatus>() },
                } },
            }],
        },
    })
}

#[cfg(test)]
mod tests {
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
}
