use serde::{Deserialize, Serialize};

/// How long an operation may take. The operator's maximum holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimeLimits {
    /// Seconds for a start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawn_seconds: Option<u32>,
    /// Seconds for a stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_seconds: Option<u32>,
}
