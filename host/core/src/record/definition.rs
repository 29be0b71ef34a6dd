//! The `CustomResourceDefinition` of records, generated from their types.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::{SpawnSpec, SpawnStatus};

/// The API group of records.
pub const GROUP: &str = "wasmspawner.io";
/// The only version of records so far.
pub const VERSION: &str = "v1alpha1";
/// Group and version, as an object states them.
pub const API_VERSION: &str = "wasmspawner.io/v1alpha1";
/// The kind of records.
pub const KIND: &str = "Spawn";
/// The kind's name in URLs.
pub const PLURAL: &str = "spawns";
/// The finalizer that turns `kubectl delete spawn` into a stop of the lab.
pub const FINALIZER: &str = "wasmspawner.io/stop";

/// The definition that is installed in a cluster.
///
/// It has no `status` subresource: the service is the only writer, and has to change `spec` and `status` in one write.
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
                    "properties": { "spec": schema::<SpawnSpec>(), "status": schema::<SpawnStatus>() },
                } },
            }],
        },
    })
}

/// The structural schema of a type: without references and keywords that Kubernetes does not accept.
fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    make_structural(&mut schema);
    schema
}

fn make_structural(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    for unwanted in ["$schema", "title", "default", "components", "nullable"] {
        fields.remove(unwanted);
    }
    for alternatives in ["oneOf", "anyOf"] {
        if let Some(Value::Array(variants)) = fields.remove(alternatives) {
            choose(fields, variants);
        }
    }
    if let Some(Value::Array(types)) = fields.get("type") {
        let other = types.iter().find(|kind| *kind != "null").cloned();
        fields.insert("type".to_owned(), other.unwrap_or_default());
    }
    if let Some(Value::Array(values)) = fields.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::String(format)) = fields.get("format")
        && !matches!(format.as_str(), "int32" | "int64" | "double")
    {
        fields.remove("format");
    }
    if fields.get("additionalProperties").is_some_and(Value::is_boolean) {
        let any = fields.remove("additionalProperties") == Some(Value::Bool(true));
        if any {
            fields.insert("x-kubernetes-preserve-unknown-fields".to_owned(), Value::Bool(true));
        }
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(make_structural);
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get_mut(inner) {
            make_structural(inner);
        }
    }
}

/// Converts an enumeration to a list of its values, and an optional type to the type itself, because absent values are
/// not written.
fn choose(fields: &mut Map<String, Value>, variants: Vec<Value>) {
    let value =
        |variant: &Value| variant.get("const").cloned().or_else(|| variant.pointer("/enum/0").cloned());
    let variants: Vec<Value> = variants
        .into_iter()
        .filter(|variant| {
            variant.get("type") != Some(&json!("null")) && *variant != json!({ "enum": [null] })
        })
        .collect();
    if variants.iter().all(|variant| value(variant).is_some()) {
        let values: Vec<Value> = variants
            .iter()
            .flat_map(|variant| match variant.get("enum") {
                Some(Value::Array(values)) => values.clone(),
                _ => value(variant).into_iter().collect(),
            })
            .collect();
        fields.insert("type".to_owned(), json!("string"));
        fields.insert("enum".to_owned(), Value::Array(values));
    } else if let Some(Value::Object(only)) = variants.into_iter().next() {
        for (name, value) in only {
            fields.entry(name).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: &Value, path: &str) {
        let Value::Object(fields) = schema else { return };
        for refused in ["$ref", "oneOf", "anyOf", "allOf", "const", "$defs", "definitions"] {
            assert!(!fields.contains_key(refused), "{path} has {refused}");
        }
        assert!(fields.get("type").is_some_and(Value::is_string), "{path} has no type: {schema}");
        for (name, inner) in fields.get("properties").and_then(Value::as_object).into_iter().flatten() {
            check(inner, &format!("{path}.{name}"));
        }
        for inner in ["items", "additionalProperties"] {
            if let Some(inner) = fields.get(inner) {
                check(inner, &format!("{path}[]"));
            }
        }
    }

    #[test]
    fn the_schema_is_structural() {
        let definition = definition();
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        check(schema, "");
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
