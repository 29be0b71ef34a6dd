//! The differences between two JSON values.

use std::fmt;
use std::ops::ControlFlow;

use serde_json::Value;

/// One place in which two values differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// A JSON pointer; empty for the whole value.
    pub place: String,
    /// The value that was expected there, if any.
    pub expected: Option<Value>,
    /// The value that is there, if any.
    pub found: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text =
            |value: &Option<Value>| value.as_ref().map_or_else(|| "nothing".to_owned(), Value::to_string);
        write!(f, "{}: expected {}, found {}", self.place, text(&self.expected), text(&self.found))
    }
}

/// The largest number of places that [`places`] returns, and the largest length of one in bytes.
const MAX_PLACES: usize = 64;
const MAX_PLACE_BYTES: usize = 200;

/// Returns all differences, in the order of the expected value.
pub fn differences(expected: &Value, found: &Value) -> Vec<Difference> {
    let mut all = Vec::new();
    // The comparison never stops early, so its result is always the same.
    let _ = compare("", Some(expected), Some(found), &mut |place, expected, found| {
        all.push(Difference { place: place.to_owned(), expected: expected.cloned(), found: found.cloned() });
        ControlFlow::Continue(())
    });
    all
}

/// Returns the places of the first 64 differences, each cut after 200 bytes. The limits are for values of any size that
/// come from outside the service.
pub fn places(expected: &Value, found: &Value) -> Vec<String> {
    let mut places = Vec::new();
    let _ = compare("", Some(expected), Some(found), &mut |place, _, _| {
        let end = place.floor_char_boundary(MAX_PLACE_BYTES);
        places.push(if end < place.len() { format!("{}...", &place[..end]) } else { place.to_owned() });
        if places.len() < MAX_PLACES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    places
}

/// Removes fields that are null, or an empty list or object.
#[must_use]
pub fn without_empty(value: Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (name, without_empty(value)))
            .filter(|(_, value)| !is_empty(value))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_empty).collect(),
        other => other,
    }
}

fn compare(
    place: &str,
    expected: Option<&Value>,
    found: Option<&Value>,
    tell: &mut impl FnMut(&str, Option<&Value>, Option<&Value>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    match (expected, found) {
        (Some(Value::Object(expected)), Some(Value::Object(found))) => {
            for (name, value) in expected {
                compare(&format!("{place}/{name}"), Some(value), found.get(name), tell)?;
            }
            for (name, value) in found.iter().filter(|(name, _)| !expected.contains_key(*name)) {
                compare(&format!("{place}/{name}"), None, Some(value), tell)?;
            }
        }
        (Some(Value::Array(expected)), Some(Value::Array(found))) => {
            for at in 0..expected.len().max(found.len()) {
                compare(&format!("{place}/{at}"), expected.get(at), found.get(at), tell)?;
            }
        }
        (Some(expected), Some(found)) if same(expected, found) => {}
        (None, None) => {}
        (expected, found) => tell(place, expected, found)?,
    }
    ControlFlow::Continue(())
}

/// Returns true if two scalars are equal. YAML does not distinguish 1 from 1.0.
fn same(expected: &Value, found: &Value) -> bool {
    expected == found
        || matches!((expected.as_f64(), found.as_f64()), (Some(a), Some(b)) if a.to_bits() == b.to_bits())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_are_few_and_short_whatever_the_values_are() {
        let found: serde_json::Map<_, _> =
            (0..1000).map(|n| (format!("{n}{}", "\u{85}".repeat(500)), json!(n))).collect();
        let places = places(&json!({}), &found.into());
        assert_eq!(places.len(), MAX_PLACES);
        assert!(places.iter().all(|place| place.len() <= MAX_PLACE_BYTES + 3 && place.ends_with("...")));
    }

    #[test]
    fn each_difference_is_told_with_its_place() {
        let expected = json!({ "labs": 1, "env": [{ "name": "A" }, { "name": "B" }], "gone": true });
        let found = json!({ "labs": 2, "env": [{ "name": "A" }], "new": [1] });
        let told: Vec<String> = differences(&expected, &found).iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                r#"/env/1: expected {"name":"B"}, found nothing"#,
                "/gone: expected true, found nothing",
                "/labs: expected 1, found 2",
                "/new: expected nothing, found [1]",
            ]
        );
        assert_eq!(differences(&json!({ "a": 1 }), &json!({ "a": 1.0 })), []);
    }

    #[test]
    fn what_has_no_value_is_left_out() {
        assert_eq!(without_empty(json!({ "a": null, "b": [], "c": { "d": {} }, "e": 0 })), json!({ "e": 0 }));
    }
}
