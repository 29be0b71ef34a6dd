use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::LabelValue;

/// Marks that make a lab's objects appear below an application of Argo CD, which neither prunes nor compares them
/// (seed 000, "Argo CD support").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ArgoCd {
    /// The application's name.
    pub instance: LabelValue,
    /// The annotation `argocd.argoproj.io/compare-options`.
    pub compare_options: String,
    /// The annotation `argocd.argoproj.io/sync-options`.
    pub sync_options: String,
}

impl Default for ArgoCd {
    fn default() -> Self {
        Self {
            instance: LabelValue::constant("nublado-users"),
            compare_options: "IgnoreExtraneous".to_owned(),
            sync_options: "Prune=false".to_owned(),
        }
    }
}
