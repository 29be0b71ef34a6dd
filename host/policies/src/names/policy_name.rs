use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The operator's name for one policy of the chain. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct PolicyName(Arc<str>);

impl PolicyName {
    /// Returns the name as text.
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
