use serde::{Deserialize, Serialize};

/// A container image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// What the kubelet pulls: `registry/repository:tag`.
    pub reference: String,
    /// `sha256:...`; pins the image, so that a moving tag cannot change under a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// For people: `Weekly 2026_21`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}
