//! `blueprints`: the site's descriptions of labs, from which users choose.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::InvalidSetting;
use crate::blueprint::{BlueprintSpec, Library};
use crate::names::ObjectName;

/// The site's descriptions of labs, from which users choose. They lie below the policies, and are granted nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BlueprintsConfig {
    /// A folder with files `NAME.yaml`, each with the blueprint NAME. It is read when the service starts, and when the
    /// configuration is read again. A path that is not absolute is relative to the configuration file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Blueprints by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub site: BTreeMap<ObjectName, BlueprintSpec>,
}

impl BlueprintsConfig {
    /// Checks all blueprints.
    pub(super) fn library(self) -> Result<Library, Vec<InvalidSetting>> {
        Library::new(self.site).map_err(|wrong| {
            let setting = |wrong: crate::blueprint::InvalidBlueprint| {
                InvalidSetting::new(format!("blueprints.site.{}.{}", wrong.name, wrong.field), wrong.problem)
            };
            wrong.into_iter().map(setting).collect()
        })
    }
}
