//! Bringing an object into its kind's form: types checked, unknown fields found.

use crate::apiserver::metadata::Document;
use crate::apiserver::schema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// How the fields of a kind are known.
#[derive(Clone, Copy, Debug)]
pub(super) enum Codec {
    /// By its type in `k8s-openapi`.
    Typed(fn(&Document) -> Result<Value, serde_json::Error>),
    /// By the schema of its `CustomResourceDefinition`.
    Schema,
}

impl Codec {
    /// A kind with a type of its own.
    pub(super) fn typed<T: DeserializeOwned + Serialize>() -> Self {
        Self::Typed(|document| {
            let typed: T = serde_json::from_value(Value::Object(document.clone()))?;
            serde_json::to_value(typed)
        })
    }

    /// The object in its kind's form, and the fields that the kind does not have: they are dropped. The error names a
    /// field of the wrong type.
    pub(super) fn decode(
        self,
        mut document: Document,
        schema: &Value,
    ) -> Result<(Document, Vec<String>), String> {
        let mut unknown = Vec::new();
        match self {
            Self::Typed(decode) => {
                let typed = decode(&document).map_err(|error| error.to_string())?;
                match keep_given(Value::Object(document), typed, "", &mut unknown) {
                    Value::Object(document) => Ok((document, unknown)),
                    _ => Err("an object is needed".to_owned()),
                }
            }
            Self::Schema => {
                schema::prune(&mut document, schema, &mut unknown);
                Ok((document, unknown))
            }
        }
    }
}

/// The fields of `given` as `typed` has them. What only `typed` has is a default of the type, not something the
/// client said; what only `given` has does not exist in the kind.
fn keep_given(given: Value, typed: Value, path: &str, unknown: &mut Vec<String>) -> Value {
    match (given, typed) {
        (Value::Object(given), Value::Object(mut typed)) => {
            let mut kept = Document::new();
            for (name, value) in given {
                if value.is_null() {
                    continue;
                }
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match typed.remove(&name) {
                    Some(typed) => {
                        kept.insert(name, keep_given(value, typed, &path, unknown));
                    }
                    None => unknown.push(path),
                }
            }
            Value::Object(kept)
        }
        (Value::Array(given), Value::Array(typed)) if given.len() == typed.len() => given
            .into_iter()
            .zip(typed)
            .enumerate()
            .map(|(i, (given, typed))| keep_given(given, typed, &format!("{path}[{i}]"), unknown))
            .collect(),
        (_, typed) => typed,
    }
}
