//! Blueprints that were not written by the site: those of repositories and of users.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BlueprintSpec, Library, ResolveError, Resolved};
use crate::names::ObjectName;

/// A blueprint that the site has not written. It says no more than its user could do in the lab anyway: what it adds is the
/// lab's image, scratch space, and what the site's own blueprints give that the user may choose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForeignBlueprint {
    /// The name under which it is merged.
    pub name: ObjectName,
    /// What it says.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub spec: BlueprintSpec,
}

/// A setting that is reserved for the site's own blueprints.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct NotForForeign {
    field: String,
    problem: &'static str,
}

impl ForeignBlueprint {
    /// Checks a blueprint that was not written by the site.
    pub fn new(name: ObjectName, spec: BlueprintSpec) -> Result<Self, NotForForeign> {
        let refuse = |field: String, problem| Err(NotForForeign { field, problem });
        if spec.platform {
            return refuse("platform".to_owned(), "is for the site's own blueprints");
        }
        if !spec.groups.is_empty() {
            return refuse("groups".to_owned(), "is for the site's own blueprints");
        }
        if let Some(volume) =
            spec.volumes.iter().find(|volume| volume.empty_dir.is_none() || volume.files().is_err())
        {
            let problem =
                "has to be an emptyDir; other volumes come from the site's own blueprints (`extends`)";
            return refuse(format!("volumes.{}", volume.name), problem);
        }
        if let Some(init) = spec.init_containers.iter().find(|init| init.image.is_some()) {
            let problem = "has an image; it runs in that of the lab";
            return refuse(format!("initContainers.{}", init.name), problem);
        }
        Ok(Self { name, spec })
    }
}

impl Library {
    /// Resolves like [`Self::resolve`], with a foreign blueprint as the chosen one. The foreign blueprint may extend
    /// the blueprints that the user may choose.
    pub fn resolve_foreign(
        &self,
        foreign: &ForeignBlueprint,
        groups: &[String],
    ) -> Result<Option<Resolved>, ResolveError> {
        if self.has(&foreign.name) {
            // A foreign blueprint with the name of one of the site's would take the place of that one wherever others
            // extend it.
            return Err(self.not_offered(&foreign.name, groups));
        }
        for parent in &foreign.spec.extends {
            self.require_choice(parent, groups)?;
        }
        let mut library = self.clone();
        library.0.insert(foreign.name.clone(), foreign.spec.clone());
        library.resolve(Some(&foreign.name), groups)
    }
}
