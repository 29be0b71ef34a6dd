//! `policies[].signed_by`: public keys of those who may sign policies.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a public key is: in a file, or in the configuration itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub enum PublicKeySource {
    /// The key in PEM: it begins with `-----BEGIN PUBLIC KEY-----`.
    Pem(String),
    /// A file with the key in PEM.
    File(PathBuf),
}

impl From<String> for PublicKeySource {
    fn from(text: String) -> Self {
        if text.trim_start().starts_with("-----BEGIN") { Self::Pem(text) } else { Self::File(text.into()) }
    }
}

impl From<PublicKeySource> for String {
    fn from(source: PublicKeySource) -> Self {
        match source {
            PublicKeySource::Pem(pem) => pem,
            PublicKeySource::File(path) => path.display().to_string(),
        }
    }
}

impl PublicKeySource {
    /// The file, if it is in one.
    pub fn file(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::Pem(_) => None,
            Self::File(path) => Some(path),
        }
    }
}
