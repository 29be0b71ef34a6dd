//! Schemas of kinds, after OpenAPI v3: their fields, defaults and rules.
//!
//! A custom kind has the schema of its definition. Kubernetes' own kinds have their fields from `k8s-openapi`, and
//! schemas with these additional keywords: `notEmpty`, `form` (of a text), `quantities` (for a map of them) and
//! `uniqueBy` (a field that must differ between the items of a list).

use super::failure::{Cause, duplicate, invalid, required, unsupported};
use super::metadata::Document;
use super::names::Form;
use crate::quantity;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::HashSet;

/// The fields that every object has, independent of the schema.
const HEAD: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Drops fields that are not in the schema.
pub(super) fn prune(document: &mut Document, schema: &Value, unknown: &mut Vec<String>) {
    prune_object(document, schema, "", unknown);
}

fn prune_object(map: &mut Document, schema: &Value, path: &str, unknown: &mut Vec<String>) {
    map.retain(|name, value| {
        let path = join(path, name);
        match field(schema, name) {
            _ if path == *name && HEAD.contains(&name.as_str()) => true,
            _ if value.is_null() => false,
            Some(schema) => {
                prune_value(value, schema, &path, unknown);
                true
            }
            None if keeps_unknown(schema) => true,
            None => {
                unknown.push(path);
                false
            }
        }
    });
}

fn prune_value(value: &mut Value, schema: &Value, path: &str, unknown: &mut Vec<String>) {
    match (value, schema.get("items")) {
        (Value::Object(map), _) => prune_object(map, schema, path, unknown),
        (Value::Array(items), Some(schema)) => {
            for (i, item) in items.iter_mut().enumerate() {
                prune_value(item, schema, &format!("{path}[{i}]"), unknown);
            }
        }
        _ => {}
    }
}

/// Sets fields without a value to their defaults.
pub(super) fn set_defaults(map: &mut Document, schema: &Value) {
    for (name, property) in properties(schema) {
        if let Some(default) = property.get("default") {
            map.entry(name).or_insert_with(|| default.clone());
        }
    }
    for (name, value) in map {
        let Some(schema) = field(schema, name) else { continue };
        match (value, schema.get("items")) {
            (Value::Object(map), _) => set_defaults(map, schema),
            (Value::Array(items), Some(schema)) => {
                items.iter_mut().filter_map(Value::as_object_mut).for_each(|item| set_defaults(item, schema));
            }
            _ => {}
        }
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn field<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let property = schema.get("properties").and_then(|properties| properties.get(name));
    property.or_else(|| schema.get("additionalProperties").filter(|schema| !schema.is_boolean()))
}

fn is_on(schema: &Value, keyword: &str) -> bool {
    schema.get(keyword).and_then(Value::as_bool) == Some(true)
}

fn keeps_unknown(schema: &Value) -> bool {
    schema.is_boolean()
        || is_on(schema, "x-kubernetes-preserve-unknown-fields")
        || is_on(schema, "additionalProperties")
        || is_on(schema, "x-kubernetes-embedded-resource")
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The problems of an object.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) causes: Vec<Cause>,
    /// A value that cannot be read as its type, with its path. The other findings do not matter then.
    pub(super) unreadable: Option<String>,
}

impl Findings {
    /// Validates an object against its schema.
    pub(super) fn check(&mut self, document: &Document, schema: &Value) {
        self.check_object(document, schema, "");
    }

    fn check_object(&mut self, map: &Document, schema: &Value, path: &str) {
        let names = schema.get("required").and_then(Value::as_array);
        for name in names.into_iter().flatten().filter_map(Value::as_str) {
            if !map.contains_key(name) {
                self.causes.push(required(join(path, name)));
            }
        }
        for (name, property) in properties(schema) {
            match map.get(name) {
                value if is_on(property, "notEmpty") && is_empty(value) => {
                    self.causes.push(required(join(path, name)));
                }
                Some(_) if path.is_empty() && HEAD.contains(&name.as_str()) => {}
                Some(value) => self.check_value(value, property, &join(path, name)),
                None => {}
            }
        }
        if let Some(schema) = schema.get("additionalProperties").filter(|schema| schema.is_object()) {
            for (name, value) in map {
                self.check_value(value, schema, &join(path, name));
            }
        }
    }

    fn check_value(&mut self, value: &Value, schema: &Value, path: &str) {
        if let Some(expected) = schema.get("type").and_then(Value::as_str)
            && !has_type(value, expected)
        {
            let rule = format!("must be of type {expected}");
            return self.causes.push(invalid(path, &value.to_string(), &rule));
        }
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if let Some(choices) = schema.get("enum").and_then(Value::as_array)
            && !choices.contains(value)
        {
            let choices: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
            self.causes.push(unsupported(path, &text, &choices));
        }
        if let Some(form) = schema.get("form").and_then(|form| Form::deserialize(form).ok())
            && !text.is_empty()
            && !form.accepts(&text)
        {
            self.causes.push(invalid(path, &text, form.rule()));
        }
        self.check_bounds(value, schema, path);
        match value {
            Value::Object(map) if is_on(schema, "quantities") => self.check_quantities(map, path),
            Value::Object(map) => self.check_object(map, schema, path),
            Value::Array(items) => self.check_items(items, schema, path),
            _ => {}
        }
    }

    fn check_bounds(&mut self, value: &Value, schema: &Value, path: &str) {
        #[expect(clippy::cast_precision_loss, reason = "lengths are far below 2^52")]
        let (size, least, most) = match value {
            Value::Number(number) => (number.as_f64().unwrap_or_default(), "minimum", "maximum"),
            Value::String(text) => (text.chars().count() as f64, "minLength", "maxLength"),
            Value::Array(items) => (items.len() as f64, "minItems", "maxItems"),
            Value::Object(map) => (map.len() as f64, "minProperties", "maxProperties"),
            Value::Null | Value::Bool(_) => return,
        };
        let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
        for (keyword, limit, kept) in [
            (least, bound(least), bound(least).is_none_or(|limit| size >= limit)),
            (most, bound(most), bound(most).is_none_or(|limit| size <= limit)),
        ] {
            if !kept {
                let rule = format!("{keyword} is {}", limit.unwrap_or_default());
                self.causes.push(invalid(path, &value.to_string(), &rule));
            }
        }
    }

    fn check_items(&mut self, items: &[Value], schema: &Value, path: &str) {
        if let Some(field) = schema.get("uniqueBy").and_then(Value::as_str) {
            let mut seen = HashSet::new();
            for (i, item) in items.iter().enumerate() {
                let text = item.get(field).and_then(Value::as_str).unwrap_or_default();
                if text.is_empty() || seen.insert(text) {
                    continue;
                }
                self.causes.push(duplicate(format!("{path}[{i}].{field}"), text));
            }
        }
        let Some(schema) = schema.get("items") else { return };
        for (i, item) in items.iter().enumerate() {
            self.check_value(item, schema, &format!("{path}[{i}]"));
        }
    }

    pub(super) fn check_labels(&mut self, labels: &Map<String, Value>, path: &str) {
        for (key, value) in labels {
            let value = value.as_str().unwrap_or_default();
            for (form, given) in [(Form::QualifiedName, key.as_str()), (Form::LabelValue, value)] {
                if !form.accepts(given) {
                    self.causes.push(invalid(path, given, form.rule()));
                }
            }
        }
    }

    fn check_quantities(&mut self, amounts: &Map<String, Value>, path: &str) {
        for (name, amount) in amounts {
            let (at, text) = (format!("{path}[{name}]"), amount.as_str().unwrap_or_default());
            match quantity::milli(text) {
                None => self.unreadable = Some(format!("{at}: {text:?} is not a quantity")),
                Some(..0) => self.causes.push(invalid(at, text, "must be greater than or equal to 0")),
                Some(_) => {}
            }
        }
    }
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.trim().is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Number(number)) => number.as_i64() == Some(0),
        Some(_) => false,
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
