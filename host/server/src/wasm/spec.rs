use std::borrow::Borrow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wasmspawner_core::config::{OnFailure, PolicyConfig};
use wasmspawner_core::policy::Grants;

use super::errors::{LoadError, LoadErrorKind};
use super::limits::Limits;

/// The name of a policy in the configuration. Clones are cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct PolicyName(Arc<str>);

impl PolicyName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for PolicyName {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl From<String> for PolicyName {
    fn from(name: String) -> Self {
        Self(name.into())
    }
}

impl From<PolicyName> for String {
    fn from(name: PolicyName) -> Self {
        name.as_str().into()
    }
}

impl Borrow<str> for PolicyName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// SHA-256 of a component: `sha256:` and 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

/// The text is not a digest.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no digest; it must be `sha256:` and 64 hexadecimal digits")]
pub struct DigestError(String);

impl Digest {
    /// The digest of `bytes`.
    pub(super) fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// The hexadecimal digits, without `sha256:`.
    pub fn hex(&self) -> String {
        use fmt::Write as _;
        self.0.iter().fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let refuse = || DigestError(text.to_owned());
        let digits = text.strip_prefix("sha256:").ok_or_else(refuse)?;
        if digits.len() != 64 || !digits.is_ascii() {
            return Err(refuse());
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).map_err(|_| refuse())?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The configuration of one policy of the chain.
#[derive(Clone, Debug)]
pub struct PolicySpec {
    /// The name, unique in the chain. It appears in logs, metrics and errors.
    pub name: PolicyName,
    /// The component's file, or a directory that contains exactly one `*.wasm`.
    pub path: PathBuf,
    /// If set, a file with another digest is not loaded.
    pub digest: Option<Digest>,
    /// The policy's own configuration, given to it as JSON.
    pub config: serde_json::Value,
    /// What the policy may ask for beyond the default. The core checks this.
    pub grants: Grants,

    /// What happens when the policy fails.
    pub on_failure: OnFailure,
    /// The limits of each call.
    pub limits: Limits,
}

impl PolicySpec {
    /// A policy with the default limits and without configuration, grants and digest.
    pub fn new(name: &str, path: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            path: path.into(),
            digest: None,
            config: serde_json::Value::Object(serde_json::Map::new()),
            grants: Grants::default(),

            on_failure: OnFailure::default(),
            limits: Limits::default(),
        }
    }

    /// A policy from the configuration file. Relative paths start at `base`.
    ///
    /// # Errors
    ///
    /// If the digest is malformed.
    pub fn from_config(config: PolicyConfig, base: &Path) -> Result<Self, LoadError> {
        let name = PolicyName::from(config.name);
        let refused = |error| LoadError { policy: name.clone(), kind: LoadErrorKind::Digest(error) };
        Ok(Self {
            path: base.join(config.path),
            digest: config.digest.as_deref().map(str::parse).transpose().map_err(refused)?,
            config: config.config.into(),
            grants: config.grants,
            on_failure: config.on_failure,
            limits: config.limits.into(),
            name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_back_as_written() {
        let digest = Digest::of(b"abc");
        let text = digest.to_string();
        assert_eq!(text, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(text.parse::<Digest>().unwrap(), digest);
    }

    #[test]
    fn what_is_no_digest_is_refused() {
        for text in ["", "sha256:", "sha256:zz", "md5:ba78", &format!("sha256:{}", "é".repeat(32))] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
