//! The `CustomResourceDefinition`s of environments, generated from their types.

use serde_json::{Value, json};

use super::{
    Claim, ClaimSpec, ClaimStatus, Class, ClassSpec, Environment, EnvironmentSpec, EnvironmentStatus, Target,
    TargetSpec, TargetStatus,
};
use crate::custom_resource::definition;
use crate::custom_resource::structural_schema::structural_schema;

/// Returns the definitions to install in a cluster.
pub fn definitions() -> [Value; 4] {
    [
        definition::<Class>(
            "dtcls",
            &class_spec(),
            None,
            "A way in which targets for labs are made, and what becomes of them.",
            &[
                ("Provisioner", ".spec.provisioner", "Who makes its targets"),
                ("Reclaim", ".spec.reclaimPolicy", "What becomes of a target when its claim is deleted"),
                ("Pool", ".spec.poolSize", "How many targets are kept ready"),
            ],
        ),
        definition::<Claim>(
            "dtc",
            &structural_schema::<ClaimSpec>(),
            Some(structural_schema::<ClaimStatus>()),
            "Somebody wants a target: a namespace for labs.",
            &[
                ("Class", ".spec.deploymentTargetClassName", "The class of the target"),
                ("Target", ".spec.targetName", "The target that it has"),
                ("Status", ".status.phase", "Where in its life it is"),
            ],
        ),
        definition::<Target>(
            "dt",
            &structural_schema::<TargetSpec>(),
            Some(structural_schema::<TargetStatus>()),
            "A namespace with credentials, in this cluster or in another.",
            &[
                ("Class", ".spec.deploymentTargetClassName", "Its class"),
                ("Claim", ".spec.claimRef.name", "The claim that has it"),
                ("Namespace", ".spec.kubernetesCredentials.defaultNamespace", "The namespace that it is"),
                ("Status", ".status.phase", "Where in its life it is"),
            ],
        ),
        definition::<Environment>(
            "env",
            &structural_schema::<EnvironmentSpec>(),
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

/// Returns the schema of classes. It contains the defaults, so that users can see them in the objects.
fn class_spec() -> Value {
    let mut spec = structural_schema::<ClassSpec>();
    for (field, default) in [("reclaimPolicy", json!("Retain")), ("poolSize", json!(0))] {
        if let Some(schema) = spec["properties"].get_mut(field) {
            schema["default"] = default;
        }
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::custom_resource::structural_schema::assert_structural;

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
