//! `form`: settings of the spawn form.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the spawn form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FormConfig {
    /// True if the form begins with the choices with which the same server of the user was last started, as far as they
    /// are still available. JupyterHub keeps them. False: it always begins with the defaults.
    pub remember: bool,
}

impl Default for FormConfig {
    fn default() -> Self {
        Self { remember: true }
    }
}
