use serde_json::{Value, json};

use super::Kind;
use crate::custom_resource::api_group::{GROUP, VERSION};

/// A column of `kubectl get`: its heading, the JSON path of its value, and its description.
type Column = (&'static str, &'static str, &'static str);

/// Returns the `CustomResourceDefinition` of a kind with these structural schemas of its spec and, if it has one, its
/// status.
pub(crate) fn definition<K: Kind>(
    short_name: &str,
    spec: &Value,
    status: Option<Value>,
    description: &str,
    columns: &[Column],
) -> Value {
    let column = |&(name, path, description): &Column| {
        let kind = spec.pointer(&path.replace(".spec.", "/properties/")).map_or("string", |schema| {
            match schema["type"].as_str() {
                Some("integer") => "integer",
                Some("boolean") => "boolean",
                _ => "string",
            }
        });
        json!({"name": name, "type": kind, "jsonPath": path, "description": description})
    };
    let mut columns: Vec<Value> = columns.iter().map(column).collect();
    columns.push(json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}));
    let mut properties = json!({ "spec": spec });
    let mut version = json!({
        "name": VERSION,
        "served": true,
        "storage": true,
        "additionalPrinterColumns": columns,
    });
    if let Some(status) = status {
        properties["status"] = status;
        version["subresources"] = json!({ "status": {} });
    }
    version["schema"] = json!({ "openAPIV3Schema": {
        "type": "object", "description": description, "required": ["spec"], "properties": properties,
    } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{}.{GROUP}", K::PLURAL) },
        "spec": {
            "group": GROUP,
            "scope": if K::NAMESPACED { "Namespaced" } else { "Cluster" },
            "names": {
                "kind": K::KIND,
                "listKind": format!("{}List", K::KIND),
                "plural": K::PLURAL,
                "singular": K::KIND.to_lowercase(),
                "shortNames": [short_name],
            },
            "versions": [version],
        },
    })
}
