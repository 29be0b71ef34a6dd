//! The schema of a custom kind: what it knows of an object, and what it demands.

use crate::apiserver::failure::{Cause, invalid, required, unsupported};
use crate::apiserver::metadata::Document;
use serde_json::Value;
use std::sync::Arc;

/// The `openAPIV3Schema` of a custom kind.
#[derive(Clone, Debug)]
pub(super) struct CustomSchema(pub(super) Arc<Value>);

impl CustomSchema {
    /// Drops what the schema does not know, and sets its defaults.
    pub(super) fn prune(&self, document: Document, unknown: &mut Vec<String>) -> Result<Document, String> {
        let mut kept = Document::new();
        for (name, mut value) in document {
            // The object's own head is not the schema's business.
            if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                if value.is_null() {
                    continue;
                }
                match field(&self.0, &name) {
                    Some(schema) => prune(&mut value, schema, &name, unknown),
                    None if keeps_unknown(&self.0) => {}
                    None => {
                        unknown.push(name);
                        continue;
                    }
                }
            } else if name == "metadata" && !value.is_object() {
                return Err("metadata: an object is needed".to_owned());
            }
            kept.insert(name, value);
        }
        set_defaults(&mut kept, &self.0);
        Ok(kept)
    }

    /// What of the schema the object breaks.
    pub(super) fn causes(&self, document: &Document) -> Vec<Cause> {
        let mut causes = Vec::new();
        check_object(document, &self.0, "", &mut causes);
        causes
    }
}

fn field<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema
        .get("properties")
        .and_then(|p| p.get(name))
        .or_else(|| schema.get("additionalProperties").filter(|v| !v.is_boolean()))
}

fn keeps_unknown(schema: &Value) -> bool {
    let on = |name: &str| schema.get(name).and_then(Value::as_bool) == Some(true);
    schema.is_boolean()
        || on("x-kubernetes-preserve-unknown-fields")
        || on("additionalProperties")
        || on("x-kubernetes-embedded-resource")
}

fn prune(value: &mut Value, schema: &Value, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            map.retain(|name, value| {
                let path = format!("{path}.{name}");
                match field(schema, name) {
                    _ if value.is_null() => false,
                    Some(schema) => {
                        prune(value, schema, &path, unknown);
                        true
                    }
                    None if keeps_unknown(schema) => true,
                    None => {
                        unknown.push(path);
                        false
                    }
                }
            });
            set_defaults(map, schema);
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for (i, item) in items.iter_mut().enumerate() {
                    prune(item, schema, &format!("{path}[{i}]"), unknown);
                }
            }
        }
        _ => {}
    }
}

fn set_defaults(map: &mut Document, schema: &Value) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        if let Some(default) = property.get("default")
            && !map.contains_key(name)
        {
            map.insert(name.clone(), default.clone());
        }
    }
}

fn check_object(map: &Document, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let at = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let names = schema.get("required").and_then(Value::as_array);
    for name in names.into_iter().flatten().filter_map(Value::as_str) {
        if !map.contains_key(name) {
            causes.push(required(at(name)));
        }
    }
    for (name, value) in map {
        if path.is_empty() && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            continue;
        }
        if let Some(schema) = field(schema, name) {
            check(value, schema, &at(name), causes);
        }
    }
}

fn check(value: &Value, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    if let Some(expected) = schema.get("type").and_then(Value::as_str)
        && !has_type(value, expected)
    {
        let why = format!("{path} in body must be of type {expected}");
        causes.push(invalid(path, type_of(value), &why));
        return;
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array)
        && !choices.contains(value)
    {
        let choices: Vec<String> =
            choices.iter().map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned)).collect();
        let choices: Vec<&str> = choices.iter().map(String::as_str).collect();
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        causes.push(unsupported(path, &text, &choices));
    }
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    #[expect(clippy::cast_precision_loss, reason = "lengths are far below 2^52")]
    let measured = match value {
        Value::Number(number) => number.as_f64().map(|n| (n, "minimum", "maximum")),
        Value::String(text) => Some((text.chars().count() as f64, "minLength", "maxLength")),
        Value::Array(items) => Some((items.len() as f64, "minItems", "maxItems")),
        Value::Object(map) => Some((map.len() as f64, "minProperties", "maxProperties")),
        _ => None,
    };
    if let Some((size, least, most)) = measured {
        if let Some(limit) = bound(least).filter(|limit| size < *limit) {
            let why = format!("{path} in body should be at least {limit} ({least})");
            causes.push(invalid(path, &value.to_string(), &why));
        }
        if let Some(limit) = bound(most).filter(|limit| size > *limit) {
            let why = format!("{path} in body should be at most {limit} ({most})");
            causes.push(invalid(path, &value.to_string(), &why));
        }
    }
    match value {
        Value::Object(map) => check_object(map, schema, path, causes),
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for (i, item) in items.iter().enumerate() {
                    check(item, schema, &format!("{path}[{i}]"), causes);
                }
            }
        }
        _ => {}
    }
}

fn has_type(value: &Value, expected: &str) -> bool {
    match expected {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => true,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
