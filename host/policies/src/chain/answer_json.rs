//! The answer of a hook as JSON, for people and for comparisons.

use serde_json::{Value, json};
use wasmspawner_core::values::difference::without_empty;

use crate::errors::{CallError, CallErrorKind};

/// Returns the answer, or `{"error": {"kind": ..., "message": ...}}`. Fields without a value are left out.
pub fn answer_json(answer: Result<Value, &CallError>) -> Value {
    let error = match answer {
        Ok(answer) => return without_empty(answer),
        Err(error) => error,
    };
    let mut told = json!({ "kind": error.kind.name() });
    match &error.kind {
        CallErrorKind::Denied(denial) => {
            told["message"] = json!(denial.message);
            if let Some(rule) = &denial.rule {
                told["rule"] = json!(rule);
            }
        }
        CallErrorKind::Invalid(fields) => told["fields"] = json!(fields),
        CallErrorKind::RetryLater(seconds) => told["seconds"] = json!(seconds),
        other => told["message"] = json!(other.to_string()),
    }
    json!({ "error": told })
}
