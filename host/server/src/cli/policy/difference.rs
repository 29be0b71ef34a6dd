//! How two JSON values differ.

use serde_json::Value;

/// The differences, one line each: the place, what was expected, and what there is.
pub(super) fn differences(expected: &Value, found: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare("", Some(expected), Some(found), &mut lines);
    lines
}

fn compare(place: &str, expected: Option<&Value>, found: Option<&Value>, lines: &mut Vec<String>) {
    match (expected, found) {
        (Some(Value::Object(expected)), Some(Value::Object(found))) => {
            for (name, value) in expected {
                compare(&format!("{place}/{name}"), Some(value), found.get(name), lines);
            }
            for (name, value) in found.iter().filter(|(name, _)| !expected.contains_key(*name)) {
                compare(&format!("{place}/{name}"), None, Some(value), lines);
            }
        }
        (Some(Value::Array(expected)), Some(Value::Array(found))) => {
            for at in 0..expected.len().max(found.len()) {
                compare(&format!("{place}/{at}"), expected.get(at), found.get(at), lines);
            }
        }
        (Some(expected), Some(found)) if same(expected, found) => {}
        (Some(expected), Some(found)) => lines.push(format!("{place}: expected {expected}, found {found}")),
        (Some(expected), None) => lines.push(format!("{place}: expected {expected}, found nothing")),
        (None, Some(found)) => lines.push(format!("{place}: expected nothing, found {found}")),
        (None, None) => {}
    }
}

/// YAML does not tell 1 from 1.0.
fn same(expected: &Value, found: &Value) -> bool {
    expected == found
        || matches!((expected.as_f64(), found.as_f64()), (Some(a), Some(b)) if a.to_bits() == b.to_bits())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_difference_is_told_with_its_place() {
        let expected = json!({ "labs": 1, "env": [{ "name": "A" }, { "name": "B" }], "gone": true });
        let found = json!({ "labs": 2, "env": [{ "name": "A" }], "new": [1] });
        assert_eq!(
            differences(&expected, &found),
            [
                r#"/env/1: expected {"name":"B"}, found nothing"#,
                "/gone: expected true, found nothing",
                "/labs: expected 1, found 2",
                "/new: expected nothing, found [1]",
            ]
        );
        assert_eq!(differences(&json!({ "a": 1 }), &json!({ "a": 1.0 })), [""; 0]);
    }
}
