//! The path of a repository at the site's git server.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The largest length of a path, in bytes.
const MAX_PATH_BYTES: usize = 200;

/// The path of a repository, such as `org/project`: two or more parts of letters, digits, `.`, `_` and `-`. The path
/// becomes a part of a URL, so it must not be a URL itself, and no part may be `.` or `..`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Repository(String);

/// Text that is not the path of a repository.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a repository is `ORGANIZATION/PROJECT`: two or more parts of letters, digits, `.`, `_` and `-`, with at most 200 characters"
)]
pub struct InvalidRepository;

impl Repository {
    /// Parses a path.
    pub fn parse(text: &str) -> Result<Self, InvalidRepository> {
        let is_part = |part: &str| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
            !part.is_empty() && part != "." && part != ".." && part.bytes().all(allowed)
        };
        let is_path = text.len() <= MAX_PATH_BYTES && text.contains('/') && text.split('/').all(is_part);
        is_path.then(|| Self(text.to_owned())).ok_or(InvalidRepository)
    }
}

impl TryFrom<String> for Repository {
    type Error = InvalidRepository;

    fn try_from(text: String) -> Result<Self, InvalidRepository> {
        Self::parse(&text)
    }
}

impl Repository {
    /// Returns the path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
