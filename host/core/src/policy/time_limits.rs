use serde::{Deserialize, Serialize};

/// Time limits of a lab's operations. The operator's maximum applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimeLimits {
    /// Limit of a spawn in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawn_seconds: Option<u32>,
    /// Limit of a deletion in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_seconds: Option<u32>,
}
