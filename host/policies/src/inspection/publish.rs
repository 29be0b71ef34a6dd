//! Creates the artifact of a policy for a registry.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use wasmspawner_core::values::digest::Digest;

use super::inspect::InspectedPolicy;
use crate::source::artifact::FILE_TYPE;
use wasmspawner_registry::NewArtifact;

/// The media type of an artifact's metadata about its component.
const CONFIG_TYPE: &str = "application/vnd.wasm.config.v0+json";

/// An artifact's metadata about its component.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AboutComponent<'a> {
    created: String,
    architecture: &'a str,
    os: &'a str,
    layer_digests: [Digest; 1],
    component: Interfaces<'a>,
}

#[derive(Serialize)]
struct Interfaces<'a> {
    exports: &'a [String],
    imports: &'a [String],
}

/// Creates the artifact of a checked policy.
pub fn artifact(policy: &InspectedPolicy, created: Timestamp) -> NewArtifact {
    let created = created.to_string();
    let about = AboutComponent {
        created: created.clone(),
        architecture: "wasm",
        os: "wasip2",
        layer_digests: [policy.policy.digest],
        component: Interfaces { exports: &policy.exports, imports: &policy.imports },
    };
    let said = [
        ("created", created),
        ("title", policy.policy.title.clone()),
        ("version", policy.policy.version.clone()),
        ("description", policy.policy.description.clone()),
    ];
    let annotations: BTreeMap<String, String> = said
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (format!("org.opencontainers.image.{name}"), value))
        .collect();
    NewArtifact {
        file: policy.component.clone(),
        file_type: FILE_TYPE,
        config: serde_json::json!(about).to_string().into(),
        config_type: CONFIG_TYPE,
        annotations,
    }
}
