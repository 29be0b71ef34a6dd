//! The schemas of custom resources, generated from their types.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Returns the structural schema of a type, without references and without keywords that Kubernetes does not accept.
pub(crate) fn structural_schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    make_structural(&mut schema);
    schema
}

fn make_structural(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    for unwanted in ["$schema", "title", "default", "components", "nullable"] {
        fields.remove(unwanted);
    }
    for alternatives in ["oneOf", "anyOf"] {
        if let Some(Value::Array(variants)) = fields.remove(alternatives) {
            choose(fields, variants);
        }
    }
    if let Some(Value::Array(types)) = fields.get("type") {
        let other = types.iter().find(|kind| *kind != "null").cloned();
        fields.insert("type".to_owned(), other.unwrap_or_default());
    }
    if let Some(Value::Array(values)) = fields.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::String(format)) = fields.get("format")
        && !matches!(format.as_str(), "int32" | "int64" | "double")
    {
        fields.remove("format");
    }
    if fields.get("additionalProperties").is_some_and(Value::is_boolean) {
        let any = fields.remove("additionalProperties") == Some(Value::Bool(true));
        if any {
            fields.insert("x-kubernetes-preserve-unknown-fields".to_owned(), Value::Bool(true));
        }
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(make_structural);
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get_mut(inner) {
            make_structural(inner);
        }
    }
}

/// Converts an enumeration to a list of its values, and an optional type to the type itself, because absent values are
/// not written.
fn choose(fields: &mut Map<String, Value>, variants: Vec<Value>) {
    let value =
        |variant: &Value| variant.get("const").cloned().or_else(|| variant.pointer("/enum/0").cloned());
    let variants: Vec<Value> = variants
        .into_iter()
        .filter(|variant| {
            variant.get("type") != Some(&json!("null")) && *variant != json!({ "enum": [null] })
        })
        .collect();
    if variants.iter().all(|variant| value(variant).is_some()) {
        let values: Vec<Value> = variants
            .iter()
            .flat_map(|variant| match variant.get("enum") {
                Some(Value::Array(values)) => values.clone(),
                _ => value(variant).into_iter().collect(),
            })
            .collect();
        fields.insert("type".to_owned(), json!("string"));
        fields.insert("enum".to_owned(), Value::Array(values));
    } else if let Some(mut only) = variants.into_iter().next() {
        make_structural(&mut only);
        let Value::Object(only) = only else { return };
        for (name, value) in only {
            fields.entry(name).or_insert(value);
        }
    }
}

/// Returns values that together have every field and every enum value of a structural schema.
pub(crate) fn examples(schema: &Value) -> Vec<Value> {
    (0..longest_enum(schema)).map(|nth| example(schema, nth)).collect()
}

/// Returns the length of the longest enumeration in a schema, which is 1 if it has none.
fn longest_enum(schema: &Value) -> usize {
    let words = schema.get("enum").and_then(Value::as_array).map_or(1, Vec::len);
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values);
    let others = [schema.get("items"), schema.get("additionalProperties")].into_iter().flatten();
    properties.chain(others).map(longest_enum).fold(words, usize::max)
}

/// Returns a value with every field of a schema. Where it has an enumeration, the `nth` value is taken.
fn example(schema: &Value, nth: usize) -> Value {
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return words.iter().cycle().nth(nth).cloned().unwrap_or_default();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let mut fields: Map<String, Value> = properties
                .into_iter()
                .flatten()
                .map(|(name, inner)| (name.clone(), example(inner, nth)))
                .collect();
            if let Some(inner) = schema.get("additionalProperties") {
                fields.insert("key".to_owned(), example(inner, nth));
            }
            Value::Object(fields)
        }
        Some("array") => schema.get("items").map(|inner| example(inner, nth)).into_iter().collect(),
        Some("string") => json!("text"),
        Some("boolean") => json!(true),
        Some("integer" | "number") => json!(1),
        _ => Value::Null,
    }
}

/// Fails if `schema`, the schema of the field at `path`, has anything that Kubernetes refuses.
#[cfg(test)]
pub(crate) fn assert_structural(schema: &Value, path: &str) {
    let Value::Object(fields) = schema else { return };
    for refused in ["$ref", "oneOf", "anyOf", "allOf", "const", "$defs", "definitions"] {
        assert!(!fields.contains_key(refused), "{path} has {refused}");
    }
    assert!(fields.get("type").is_some_and(Value::is_string), "{path} has no type: {schema}");
    for (name, inner) in fields.get("properties").and_then(Value::as_object).into_iter().flatten() {
        assert_structural(inner, &format!("{path}.{name}"));
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get(inner) {
            assert_structural(inner, &format!("{path}[]"));
        }
    }
}
