use serde::{Deserialize, Serialize};

/// A name and a value: a label, an annotation or a part of a node selector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// The key.
    pub name: String,
    /// The value.
    pub value: String,
}

impl Pair {
    /// Creates a pair of `name` and `value`.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}
