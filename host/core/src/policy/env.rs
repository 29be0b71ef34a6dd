use serde::{Deserialize, Serialize};

/// A key of a Secret in the lab's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRef {
    /// Name of the Secret.
    pub name: String,
    /// Key within it.
    pub key: String,
}

/// The source of an environment variable's value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvValue {
    /// The value itself.
    Literal(String),
    /// A key of a Secret. Needs the grant `secrets: [name]`.
    SecretRef(KeyRef),
    /// A field of the pod, such as `status.podIP`.
    FieldRef(String),
}

/// An environment variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvVar {
    /// The name: `[A-Za-z_][A-Za-z0-9_]*`.
    pub name: String,
    /// The value, or its source.
    pub value: EnvValue,
}

impl EnvVar {
    /// A variable with a literal value.
    pub fn literal(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: EnvValue::Literal(value.into()) }
    }
}
