use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The largest length of a tag (OCI Distribution Specification 1.1, "Pulling manifests").
const MAX_TAG_LENGTH: usize = 128;

/// The tag of an image, of up to 128 letters, digits, `_`, `.` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Tag(String);

/// Text that is not a tag.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a tag; it may have letters, digits, `_`, `.` and `-`, and at most {MAX_TAG_LENGTH} of them"
)]
pub struct InvalidTag(String);

impl Tag {
    /// Parses a tag.
    pub fn parse(text: impl Into<String>) -> Result<Self, InvalidTag> {
        let text = text.into();
        let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        let first = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        if first && text.len() <= MAX_TAG_LENGTH && text.chars().all(inner) {
            Ok(Self(text))
        } else {
            Err(InvalidTag(text))
        }
    }

    /// Returns the tag as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Tag {
    type Error = InvalidTag;

    fn try_from(text: String) -> Result<Self, InvalidTag> {
        Self::parse(text)
    }
}

impl Borrow<str> for Tag {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
