//! SHA-256 digests, as registries and configurations write them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A SHA-256: `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Digest([u8; 32]);

/// The error for text that is not a digest.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a digest; it must be `sha256:` and 64 hexadecimal digits in lower case")]
pub struct DigestError(String);

impl Digest {
    /// Computes the digest of `bytes`.
    pub fn sha256(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// Returns the hexadecimal digits without the prefix `sha256:`.
    pub fn hex(&self) -> String {
        use fmt::Write as _;
        self.0.iter().fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    /// Returns the first `digits` hexadecimal digits, which tell names apart.
    pub fn short_hex(&self, digits: usize) -> String {
        let mut hex = self.hex();
        hex.truncate(digits);
        hex
    }

    /// Returns the 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let refuse = || DigestError(text.to_owned());
        let digits = text.strip_prefix("sha256:").ok_or_else(refuse)?;
        if digits.len() != 64 || !digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(refuse());
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).map_err(|_| refuse())?;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_survives_printing_and_parsing() {
        let digest = Digest::sha256(b"abc");
        let text = digest.to_string();
        assert_eq!(text, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(text.parse::<Digest>().unwrap(), digest);
    }

    #[test]
    fn text_that_is_not_a_digest_is_refused() {
        for text in [
            "",
            "sha256:",
            "sha256:zz",
            "md5:ba78",
            &format!("sha256:{}", "é".repeat(32)),
            &format!("sha256:{}", "+a".repeat(32)),
            &format!("sha256:{}", "A".repeat(64)),
        ] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
