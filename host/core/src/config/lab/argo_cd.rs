use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::LabelValue;

/// Annotations that show a lab's objects below an Argo CD application without Argo CD pruning or comparing them
/// (SQR-066, "Argo CD support").
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
