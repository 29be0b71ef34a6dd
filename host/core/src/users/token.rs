//! Entries of the file of static tokens. Each entry is one line, so that a token is added by appending a line.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::names::Username;
use crate::users::access::ScopeSet;
use crate::users::identity::{Group, Identity};
use crate::values::digest::Digest;

/// The SHA-256 of a token. The token itself is not stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenDigest(Digest);

impl TokenDigest {
    /// Computes the digest of `token`.
    pub fn from_token(token: &str) -> Self {
        Self(Digest::sha256(token.as_bytes()))
    }

    /// Returns the 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// Returns the digest as 64 lower-case hexadecimal digits.
    pub fn to_hex(&self) -> String {
        self.0.hex()
    }
}

/// Shows only the beginning of the digest, which is enough to find it in the file.
impl std::fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "sha256:{}..", self.0.short_hex(8))
    }
}

impl TryFrom<String> for TokenDigest {
    type Error = &'static str;

    fn try_from(hex: String) -> Result<Self, Self::Error> {
        let digest = format!("sha256:{}", hex.to_ascii_lowercase()).parse();
        digest.map(Self).map_err(|_| "not a SHA-256: it has 64 hexadecimal digits")
    }
}

impl From<TokenDigest> for String {
    fn from(digest: TokenDigest) -> Self {
        digest.to_hex()
    }
}

impl Serialize for TokenDigest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_hex())
    }
}

impl<'de> Deserialize<'de> for TokenDigest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// One static token and its permissions. The token file is a YAML list of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenEntry {
    /// The SHA-256 of the token, in hexadecimal: `printf %s TOKEN | sha256sum`.
    pub sha256: TokenDigest,
    /// The user who owns the token.
    pub user: Username,
    /// The scopes that the token carries.
    pub scopes: ScopeSet,
    /// The time at which the token expires, such as `2027-01-31T00:00:00Z`. Without it, the token is valid until its
    /// entry is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// The user's UID. Together with `gid` it overrides the configured identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The GID of the user's primary group. It is given together with `uid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// All groups of the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
}

impl TokenEntry {
    /// Returns the time at which the token expired, or `None` if it is still valid at `now`.
    pub fn expired_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.expires.filter(|expires| *expires <= now)
    }

    /// Returns the user's identity, if the entry has `uid` and `gid`.
    pub fn identity(&self) -> Option<Identity> {
        let groups = self.groups.clone();
        Some(Identity { groups, ..Identity::with_numbers(self.user.clone(), self.uid?, self.gid?) })
    }

    /// Returns the line of the token file for this entry.
    pub fn to_line(&self) -> Result<String, serde_json::Error> {
        Ok(format!("- {}\n", serde_json::to_string(self)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::access::Scope;

    fn entry(token: &str) -> TokenEntry {
        TokenEntry {
            sha256: TokenDigest::from_token(token),
            user: Username::parse("ada: [lovelace]").unwrap(),
            scopes: [Scope::ExecNotebook].into(),
            expires: Some("2027-01-31T00:00:00Z".parse().unwrap()),
            uid: Some(1000),
            gid: Some(1001),
            groups: vec![Group { name: "x".into(), gid: Some(7) }],
        }
    }

    #[test]
    fn appended_lines_are_a_yaml_list() {
        let (one, two) = (entry("one"), entry("two"));
        let file = one.to_line().unwrap() + &two.to_line().unwrap();
        assert_eq!(serde_saphyr::from_str::<Vec<TokenEntry>>(&file).unwrap(), [one, two]);
    }

    #[test]
    fn the_file_can_be_written_by_hand() {
        let yaml = "# tokens\n- sha256: 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae\n  user: foo\n  scopes: [admin:notebook]\n";
        let entries: Vec<TokenEntry> = serde_saphyr::from_str(yaml).unwrap();
        assert_eq!(entries[0].sha256, TokenDigest::from_token("foo"));
        assert_eq!(entries[0].identity(), None);
    }

    #[test]
    fn an_entry_expires_at_its_time() {
        for (now, expected) in [("2027-01-30T23:59:59Z", false), ("2027-01-31T00:00:00Z", true)] {
            assert_eq!(entry("one").expired_at(now.parse().unwrap()).is_some(), expected, "{now}");
        }
        let forever = TokenEntry { expires: None, ..entry("one") };
        assert!(forever.expired_at("9000-01-01T00:00:00Z".parse().unwrap()).is_none());
    }

    #[test]
    fn a_bad_digest_is_refused() {
        for hex in ["", "zz", &"g".repeat(64), &"é".repeat(32)] {
            assert!(TokenDigest::try_from(hex.to_owned()).is_err(), "{hex}");
        }
    }
}
