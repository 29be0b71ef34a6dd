use serde::{Deserialize, Serialize};

/// A text file that a policy puts into a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextFile {
    /// Absolute path in the lab's container.
    pub path: String,
    /// The content.
    pub content: String,
}
