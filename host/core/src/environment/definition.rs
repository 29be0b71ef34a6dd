//! The `CustomResourceDefinition`s of environments, generated from their types.

use schemars::JsonSchema;
use serde_json::{Value, json};

use super::{
    Claim, ClaimSpec, ClaimStatus, Class, ClassSpec, Environment, EnvironmentSpec, EnvironmentStatus, Kind,
    Target, TargetSpec, TargetStatus,
};
use crate::api_group::{GROUP, VERSION};
use crate::structural_schema::structural_schema;

/// The definitions that are installed in a cluster.
pub fn definitions() -> [Value; 4] {
    [
        definition::<Class, ClassSpec>(
            "dtcls",
            None,
            "A way in which targets for labs are made, and what becomes of them.",
            &[
                ("Provisioner", ".spec.provisioner", "Who makes its targets"),
                ("Reclaim", ".spec.reclaimPolicy", "What becomes of a target when its claim is deleted"),
                ("Pool", ".spec.poolSize", "How many targets are kept ready"),
            ],
        ),
        definition::<Claim, ClaimSpec>(
            "dtc",
            Some(structural_schema::<ClaimStatus>()),
            "Somebody wants a target: a namespace for labs.",
            &[
                ("Class", ".spec.deploymentTargetClassName", "The class of the target"),
                ("Target", ".spec.targetName", "The target that it has"),
                ("Status", ".status.phase", "Where in its life it is"),
            ],
        ),
        definition::<Target, TargetSpec>(
            "dt",
            Some(structural_schema::<TargetStatus>()),
            "A namespace with credentials, in this cluster or in another.",
            &[
                ("Class", ".spec.deploymentTargetClassName", "Its class"),
                ("Claim", ".spec.claimRef.name", "The claim that has it"),
                ("Namespace", ".spec.kubernetesCredentials.defaultNamespace", "The namespace that it is"),
                ("Status", ".status.phase", "Where in its life it is"),
            ],
        ),
        definition::<Environment, EnvironmentSpec>(
            "env",
            Some(structural_schema::<EnvironmentStatus>()),
            "A named place for labs.",
            &[
                ("Display name", ".spec.displayName", "The name that people read"),
                (
                    "Claim",
                    ".spec.configuration.target.deploymentTargetClaim.claimName",
                    "The claim whose target it is",
                ),
                ("Status", ".status.phase", "Whether the claim has a target"),
            ],
        ),
    ]
}

fn definition<K: Kind, Spec: JsonSchema>(
    short_name: &str,
    status: Option<Value>,
    description: &str,
    columns: &[(&str, &str, &str)],
) -> Value {
    let column = |&(name, path, description): &(&str, &str, &str)| {
        let kind = if name == "Pool" { "integer" } else { "string" };
        json!({"name": name, "type": kind, "jsonPath": path, "description": description})
    };
    let mut columns: Vec<Value> = columns.iter().map(column).collect();
    columns.push(json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}));
    let mut spec = structural_schema::<Spec>();
    // So that everybody sees what counts where nothing is written.
    for (field, default) in [("reclaimPolicy", json!("Retain")), ("poolSize", json!(0))] {
        if let (Some(schema), false) = (spec["properties"].get_mut(field), K::NAMESPACED) {
            schema["default"] = default;
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structural_schema::assert_structural;

    #[test]
    fn the_schemas_are_structural() {
        for definition in definitions() {
            let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            assert_structural(schema, definition["metadata"]["name"].as_str().unwrap());
        }
        let [class, claim, ..] = definitions();
        let spec = |definition: &Value| {
            definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].clone()
        };
        assert_eq!(spec(&class)["spec"]["properties"]["reclaimPolicy"]["enum"], json!(["Delete", "Retain"]));
        assert_eq!(
            spec(&claim)["status"]["properties"]["phase"]["enum"],
            json!(["Pending", "Bound", "Lost"])
        );
    }
}
