//! Names of claims in access tokens.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a claim is: a name, or a JSON pointer such as `/realm_access/roles` for one within others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct ClaimName(String);

impl ClaimName {
    pub(super) fn constant(name: &'static str) -> Self {
        Self(name.to_owned())
    }

    /// The claim in a token's payload. A claim that is null counts as absent.
    pub fn find<'v>(&self, payload: &'v serde_json::Value) -> Option<&'v serde_json::Value> {
        let found = if self.0.starts_with('/') { payload.pointer(&self.0) } else { payload.get(&self.0) };
        found.filter(|value| !value.is_null())
    }
}

impl fmt::Display for ClaimName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ClaimName {
    type Error = &'static str;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err("not a claim: write its name, or a path such as /realm_access/roles");
        }
        Ok(Self(name))
    }
}

impl From<ClaimName> for String {
    fn from(name: ClaimName) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_has_a_name() {
        for name in ["", "a b", "a\n"] {
            assert!(ClaimName::try_from(name.to_owned()).is_err(), "{name:?}");
        }
        assert!(ClaimName::try_from("https://example.org/groups".to_owned()).is_ok());
    }
}
