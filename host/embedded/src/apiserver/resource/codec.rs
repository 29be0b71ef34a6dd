//! Decoding of objects into their kind's form: checks types and finds unknown fields.

use crate::apiserver::metadata::Document;
use crate::apiserver::schema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The source of a kind's fields.
#[derive(Clone, Copy, Debug)]
pub(super) enum Codec {
    /// The kind's type in `k8s-openapi`.
    Typed(fn(&Document) -> Result<Value, serde_json::Error>),
    /// The schema in the kind's `CustomResourceDefinition`.
    Schema,
}

impl Codec {
    /// Creates the codec of a kind with a Rust type.
    pub(super) fn typed<T: DeserializeOwned + Serialize>() -> Self {
        Self::Typed(|document| {
            let typed: T = serde_json::from_value(Value::Object(document.clone()))?;
            serde_json::to_value(typed)
        })
    }

    /// Returns the object in its kind's form, and the unknown fields, which are dropped. The error names a field of the
    /// wrong type.
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

/// Returns the fields of `given` with the values of `typed`. A field that only `typed` has is a default of the type and
/// was not sent by the client. A field that only `given` has does not exist in the kind.
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
