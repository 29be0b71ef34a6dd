use serde_json::{Value as Json, json};

use super::*;
use crate::form::{self, Choice, NumberInput};

fn fields() -> Vec<Field> {
    let range = NumberInput { default: 1.0, minimum: Some(0.0), maximum: Some(8.0), step: None };
    vec![
        Field::radio("size", "Size", vec![Choice::new("small", "Small"), Choice::new("gpu", "GPU")]),
        Field::number("gpus", "GPUs", range).visible_when("size", &["gpu"]),
        Field::checkbox("debug", "Debug", false),
        Field::text("note", "Note", ""),
    ]
}

fn submit(entries: &[(&str, Value)]) -> Result<Options, Vec<FieldError>> {
    let mut submission = Options::default();
    for (name, value) in entries {
        submission.insert(*name, value.clone());
    }
    check(&fields(), &submission)
}

#[test]
fn a_field_that_is_not_submitted_gets_its_default() {
    let options = submit(&[]).unwrap();
    assert_eq!(options.text("size"), Some("small"));
    assert_eq!(options.get("debug"), Some(&Value::Boolean(false)));
    assert_eq!(options.get("gpus"), None, "hidden");
}

#[test]
fn submitted_texts_become_values_of_the_field_type() {
    let options = submit(&[("size", "gpu".into()), ("gpus", "2".into()), ("debug", "on".into())]).unwrap();
    assert_eq!(options.get("gpus"), Some(&Value::Integer(2)));
    assert!(options.flag("debug"));
}

#[test]
fn every_wrong_field_is_named() {
    let errors = submit(&[
        ("size", "huge".into()),
        ("debug", "maybe".into()),
        ("note", "a\nb".into()),
        ("root", true.into()),
    ]);
    let fields: Vec<_> = errors.unwrap_err().into_iter().map(|error| error.field).collect();
    assert_eq!(fields, ["size", "debug", "note", "root"]);
}

#[test]
fn numbers_outside_their_range_are_refused() {
    for wrong in ["9", "-1", "NaN", "inf", "x", ""] {
        assert!(submit(&[("size", "gpu".into()), ("gpus", wrong.into())]).is_err(), "{wrong}");
    }
}

const TABLE: &str = include_str!("../../../../tests/tables/form-fields.json");

fn rows(part: &str) -> Vec<Json> {
    let mut table: Json = serde_json::from_str(TABLE).unwrap();
    serde_json::from_value(table[part].take()).unwrap()
}

/// The field of a row.
fn field(row: &Json) -> Field {
    let field = &row["field"];
    let text = |key: &str| field[key].as_str().map(String::from);
    let kind = match field["kind"].as_str().unwrap() {
        "text" => FieldKind::Text(TextInput {
            default: text("default").unwrap_or_default(),
            placeholder: None,
            max_length: serde_json::from_value(field["maxLength"].clone()).unwrap(),
            pattern: text("pattern"),
        }),
        "number" => FieldKind::Number(NumberInput {
            default: field["default"].as_f64().unwrap_or(0.0),
            minimum: field["minimum"].as_f64(),
            maximum: field["maximum"].as_f64(),
            step: field["step"].as_f64(),
        }),
        "checkbox" => FieldKind::Checkbox(false),
        kind => {
            let values: Vec<String> = serde_json::from_value(field["choices"].clone()).unwrap();
            let choices = values.iter().map(|value| Choice::new(value, value)).collect();
            if kind == "radio" { Field::radio("", "", choices) } else { Field::select("", "", choices) }.kind
        }
    };
    Field { help: text("help"), required: field["required"] == true, ..Field::new("name", "Label", kind) }
}

#[test]
fn a_value_is_held_to_all_that_its_field_says() {
    for row in rows("values") {
        let submission = match row.get("value") {
            Some(value) => json!({"name": value}),
            None => json!({}),
        };
        let checked = check(&[field(&row)], &crate::testing::options(&submission));
        if let Some(problem) = row["problem"].as_str() {
            let errors = checked.expect_err(&row.to_string());
            assert_eq!(errors, [FieldError::new("name", problem)], "{row}");
            continue;
        }
        let options = checked.unwrap_or_else(|errors| panic!("{row} is refused: {errors:?}"));
        let (found, expected) = (options.get("name"), &row["becomes"]);
        let is_expected = match found {
            Some(Value::Boolean(value)) => expected == *value,
            Some(Value::Integer(value)) => {
                expected.as_f64().is_some_and(|number| json!(*value).as_f64() == Some(number))
            }
            Some(Value::Number(value)) => expected.as_f64() == Some(*value),
            Some(Value::Text(value)) => expected == value,
            None => false,
        };
        assert!(is_expected, "{row} becomes {found:?}");
    }
}

#[test]
fn a_field_that_cannot_be_checked_is_refused_before_anybody_sees_it() {
    for row in rows("fields") {
        let field = field(&row);
        let found = field.check().err().map(|error| format!("{}: {}", error.field, error.message));
        assert_eq!(found.as_deref(), row["problem"].as_str(), "{row}");
        let form = form::Form::Fields(vec![field.clone()]).checked();
        let message = found.map(|problem| format!("the form's field name cannot be checked: {problem}"));
        assert_eq!(form.err(), message.map(Error::Internal), "{row}");
        if let FieldKind::Text(TextInput { pattern: Some(pattern), .. }) = &field.kind
            && row["problem"].is_null()
        {
            assert!(crate::pattern::is_match(pattern, "no such text").is_ok(), "{row}");
        }
    }
}

#[test]
fn no_value_passes_a_field_that_cannot_be_checked() {
    let mut field = Field::text("code", "Code", "");
    field.kind = FieldKind::Text(TextInput {
        default: "x".into(),
        placeholder: None,
        max_length: None,
        pattern: Some("(?=x)".into()),
    });
    let errors = check(&[field], &Options::default()).unwrap_err();
    let message = "Code cannot be checked now: tell the operators of this site";
    assert_eq!(errors, [FieldError::new("code", message)]);
}
