//! Checks the blueprints of a site.

use std::collections::BTreeMap;

use super::{BlueprintSpec, Library, ResolveError};
use crate::names::ObjectName;

/// A blueprint that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct InvalidBlueprint {
    /// The name of the blueprint.
    pub name: ObjectName,
    /// The field with the error.
    pub field: &'static str,
    /// The error in words.
    pub problem: String,
}

impl Library {
    /// Checks all blueprints, and returns an error for every invalid one.
    pub fn new(blueprints: BTreeMap<ObjectName, BlueprintSpec>) -> Result<Self, Vec<InvalidBlueprint>> {
        let library = Self(blueprints);
        let wrong: Vec<_> =
            library.0.iter().filter_map(|(name, spec)| library.check(name, spec).err()).collect();
        if wrong.is_empty() { Ok(library) } else { Err(wrong) }
    }

    pub(super) fn check(&self, name: &ObjectName, spec: &BlueprintSpec) -> Result<(), InvalidBlueprint> {
        let wrong = |field, problem| InvalidBlueprint { name: name.clone(), field, problem };
        self.chain(name).map_err(|error: ResolveError| wrong("extends", error.to_string()))?;
        for volume in &spec.volumes {
            volume.files().map_err(|problem| wrong("volumes", format!("`{}` {problem}", volume.name)))?;
        }
        Ok(())
    }
}
