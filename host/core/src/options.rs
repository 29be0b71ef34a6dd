//! The options of a lab, and their values.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The options of a lab: what the spawn form's submission became, one value a key.
pub type Options = BTreeMap<String, Value>;

/// One value of the spawn form.
///
/// As JSON and YAML it is the bare scalar; whole numbers that fit are integers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number; never NaN or infinite once it passed through JSON.
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
