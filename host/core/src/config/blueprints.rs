//! `blueprints`: the site's descriptions of labs, from which users choose.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{InvalidSetting, ProvidersConfig};
use crate::custom_resource::blueprint::{BlueprintSpec, InvalidBlueprint, Library};
use crate::names::ObjectName;

/// The site's descriptions of labs, from which users choose. They lie below the policies, and are granted nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BlueprintsConfig {
    /// A folder with files `NAME.yaml`, each with the blueprint NAME. It is read when the service starts, and when the
    /// configuration is read again. A path that is not absolute is relative to the configuration file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Whether objects of the kind `Blueprint` in the service's own namespace are blueprints of the site, too. Default: no. It
    /// counts from the start of the service.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub custom_resources: bool,
    /// Where the blueprints of repositories and of users are read. Default: nowhere.
    pub providers: ProvidersConfig,
    /// Blueprints by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub site: BTreeMap<ObjectName, BlueprintSpec>,
}

impl BlueprintsConfig {
    /// Checks all blueprints.
    pub(super) fn library(self) -> Result<(Library, ProvidersConfig), Vec<InvalidSetting>> {
        let setting = |wrong: InvalidBlueprint| {
            InvalidSetting::new(format!("blueprints.site.{}.{}", wrong.name, wrong.field), wrong.problem)
        };
        let library = Library::new(self.site);
        let mut problems = self.providers.check();
        match library {
            Ok(library) if problems.is_empty() => return Ok((library, self.providers)),
            Ok(_) => {}
            Err(wrong) => problems.extend(wrong.into_iter().map(setting)),
        }
        Err(problems)
    }
}
