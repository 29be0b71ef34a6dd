use serde::{Deserialize, Serialize};

/// A container image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// The reference with which the kubelet pulls the image: `registry/repository:tag`.
    pub reference: String,
    /// Digest of the image, `sha256:...`. With it, moving the tag does not change the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Description for people: `Weekly 2026_21`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl Image {
    /// The image reference, pinned by its digest if there is one: moving a tag then does not change a lab.
    pub fn pinned(&self) -> String {
        match &self.digest {
            Some(digest) if !self.reference.contains('@') => format!("{}@{digest}", self.reference),
            _ => self.reference.clone(),
        }
    }
}
