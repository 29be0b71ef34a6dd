//! The custom resource `Blueprint`.

use serde_json::{Map, Value, json};

use super::BlueprintSpec;
use crate::custom_resource::structural_schema::structural_schema;
use crate::custom_resource::{Kind, Object, definition};

/// A blueprint that is an object in the cluster, in the service's own namespace. The object's name is that of the
/// blueprint. The spec is checked only when it joins the site's blueprints, so that errors in it can be reported.
pub type BlueprintObject = Object<Map<String, Value>, ()>;

impl Kind for BlueprintObject {
    const KIND: &'static str = "Blueprint";
    const PLURAL: &'static str = "blueprints";
}

/// Returns the definition to install in a cluster.
pub fn blueprint_definition() -> Value {
    let mut spec = structural_schema::<BlueprintSpec>();
    // The values of the options may be of any scalar type.
    let options = &mut spec["properties"]["options"];
    *options = json!({
        "type": "object",
        "description": options["description"],
        "x-kubernetes-preserve-unknown-fields": true,
    });
    definition::<BlueprintObject>(
        "bp",
        &spec,
        None,
        "A description of a lab, from which users choose.",
        &[
            ("Display name", ".spec.displayName", "The name that people read"),
            ("Extends", ".spec.extends", "The blueprints that it begins with"),
            ("Groups", ".spec.groups", "Whose members may choose it; none for everybody"),
            ("Platform", ".spec.platform", "True if it holds for every lab of its groups"),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::custom_resource::structural_schema::assert_structural;

    #[test]
    fn the_schema_is_structural() {
        let definition = blueprint_definition();
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        assert_structural(schema, "blueprints.wasmspawner.io");
        assert_eq!(definition["spec"]["versions"][0]["additionalPrinterColumns"][3]["type"], "boolean");
    }
}
