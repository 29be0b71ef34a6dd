//! The answers about blueprints.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use wasmspawner_core::custom_resource::blueprint::{BlueprintSpec, ExtendedLibrary, Resolved};
use wasmspawner_core::names::ObjectName;

/// A blueprint, as it was written.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Blueprint {
    /// Its name.
    #[schema(example = "gpu")]
    name: String,
    /// What it says, in the form of the file.
    #[schema(value_type = Object)]
    spec: Value,
    /// Why it cannot be used. Only objects of the kind `Blueprint` may have such a problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// A blueprint that a user may choose.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BlueprintChoice {
    /// Its name.
    #[schema(example = "gpu")]
    name: String,
    /// The name that people read.
    display_name: String,
    /// What it is for.
    description: Option<String>,
}

/// A blueprint with all that it consists of.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResolvedBlueprint {
    /// Its name.
    name: Option<String>,
    /// All blueprints that it consists of, in the order in which they are merged; the platform's come first.
    consists_of: Vec<String>,
    /// What they say together.
    #[schema(value_type = Object)]
    spec: BlueprintSpec,
    /// Which blueprint has decided a field, and how it was reached: `env.SIZE` by `gpu -> base`.
    sources: BTreeMap<String, String>,
    /// Fields about which two blueprints differ that do not extend each other, in words.
    overlaps: Vec<String>,
}

impl Blueprint {
    /// Returns all blueprints of a site, sorted by name.
    pub(crate) fn all(blueprints: &ExtendedLibrary) -> Vec<Self> {
        let usable = blueprints
            .library
            .all()
            .map(|(name, spec)| (name.to_string(), serde_json::to_value(spec).unwrap_or_default(), None));
        let unusable = blueprints.unusable.iter().map(|(name, unusable)| {
            (name.clone(), Value::Object(unusable.spec.clone()), Some(unusable.problem.clone()))
        });
        let mut all: Vec<Self> =
            usable.chain(unusable).map(|(name, spec, problem)| Self { name, spec, problem }).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }
}

impl From<(&ObjectName, &BlueprintSpec)> for BlueprintChoice {
    fn from((name, spec): (&ObjectName, &BlueprintSpec)) -> Self {
        Self {
            name: name.to_string(),
            display_name: spec.display_name.clone().unwrap_or_else(|| name.to_string()),
            description: spec.description.clone(),
        }
    }
}

impl From<&Resolved> for ResolvedBlueprint {
    fn from(resolved: &Resolved) -> Self {
        Self {
            name: resolved.chosen.as_ref().map(ToString::to_string),
            consists_of: resolved.consists_of.iter().map(ToString::to_string).collect(),
            spec: resolved.spec.clone(),
            sources: resolved
                .sources
                .iter()
                .map(|(field, trail)| (field.clone(), trail.to_string()))
                .collect(),
            overlaps: resolved.overlaps.iter().map(ToString::to_string).collect(),
        }
    }
}
