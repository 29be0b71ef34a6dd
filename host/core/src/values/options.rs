//! The options of a lab, and their values.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The options of a lab: the submitted spawn form, with one value for each key.
pub type Options = BTreeMap<String, Value>;

/// One value of the spawn form.
///
/// In JSON and YAML it is a plain scalar; whole numbers that fit are integers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number. A value that was read from JSON is never NaN or infinite.
    Number(f64),
    /// Text.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_scalars_keep_their_kind() {
        let options: Options =
            serde_json::from_str(r#"{"debug":true,"n":3,"x":0.5,"size":"large","t":"true"}"#).unwrap();
        assert_eq!(options["debug"], Value::Boolean(true));
        assert_eq!(options["n"], Value::Integer(3));
        assert_eq!(options["x"], Value::Number(0.5));
        assert_eq!(options["t"], Value::Text("true".into()));
        let back: Options = serde_json::from_str(&serde_json::to_string(&options).unwrap()).unwrap();
        assert_eq!(back, options);
    }
}
