//! Converts a submitted form, as JSON, to options.

use serde_json::{Map, Value as Json};

use crate::values::field_error::FieldError;
use crate::values::options::{Options, Value};

/// Reads the `options` of a spawn request. Each key has a single value. Forms submit lists of strings, so a list of one
/// element counts as that element, and the strings `true` and `false` become booleans (SQR-066, `options_from_form`).
/// Several strings become one text, which is the list as JSON. The policy decides the meaning of the keys.
pub fn options(submission: &Map<String, Json>) -> Result<Options, Vec<FieldError>> {
    let mut errors = Vec::new();
    let mut options = Options::new();
    for (key, json) in submission {
        match value(json) {
            Ok(value) => {
                options.insert(key.clone(), value);
            }
            Err(problem) => errors.push(FieldError::new(key, problem)),
        }
    }
    if errors.is_empty() { Ok(options) } else { Err(errors) }
}

fn value(json: &Json) -> Result<Value, &'static str> {
    match json {
        Json::Array(list) => match list.as_slice() {
            [] => Err("has no value; leave the key out"),
            [Json::Array(_)] => Err("is a list in a list; give a single value"),
            [single] => value(single),
            several if several.iter().all(Json::is_string) => Ok(Value::Text(json.to_string())),
            _ => Err("has several values that are not all texts; give one, or texts"),
        },
        Json::Bool(value) => Ok(Value::Boolean(*value)),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Ok(Value::Integer(integer)),
            (None, Some(number)) if number.is_finite() => Ok(Value::Number(number)),
            _ => Err("is not a number that can be represented"),
        },
        Json::String(text) if text == "true" => Ok(Value::Boolean(true)),
        Json::String(text) if text == "false" => Ok(Value::Boolean(false)),
        Json::String(text) => Ok(Value::Text(text.clone())),
        Json::Null => Err("is null; leave the key out"),
        Json::Object(_) => Err("is an object; give a text, a number, true or false"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(json: &Json) -> Result<Options, Vec<FieldError>> {
        options(json.as_object().unwrap())
    }

    #[test]
    fn strings_lists_of_one_and_json_scalars_become_single_values() {
        let read = read(&json!({
            "size": ["large"], "debug": ["true"], "reset": "false", "n": 3, "x": [0.5], "on": true, "big": u64::MAX,
            "number-as-text": ["3"], "empty": "", "several": ["a, b", "true"],
        }))
        .unwrap();
        assert_eq!(read["size"], Value::Text("large".into()));
        assert_eq!(read["debug"], Value::Boolean(true));
        assert_eq!(read["reset"], Value::Boolean(false));
        assert_eq!(read["n"], Value::Integer(3));
        assert_eq!(read["x"], Value::Number(0.5));
        assert_eq!(read["on"], Value::Boolean(true));
        assert!(matches!(read["big"], Value::Number(_)));
        assert_eq!(
            read["number-as-text"],
            Value::Text("3".into()),
            "only the policy knows that it is a number"
        );
        assert_eq!(read["empty"], Value::Text(String::new()));
        assert_eq!(read["several"], Value::Text(r#"["a, b","true"]"#.into()));
    }

    #[test]
    fn values_that_are_not_single_are_refused_by_key() {
        let errors = read(&json!({
            "a": ["1", 2], "b": [], "c": null, "d": {"e": 1}, "f": [["x"]], "g": [null], "good": ["x", "y"],
        }))
        .unwrap_err();
        let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["a", "b", "c", "d", "f", "g"]);
    }
}
