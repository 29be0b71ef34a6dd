//! Checks a submission against the fields of a form.

use crate::bindings::types::{Error, FieldError, Value};
use crate::form::{ChoiceInput, Condition, Field, FieldKind, NumberInput, TextInput};
use crate::options::Options;

/// The submission checked against the fields that this user sees: what `Form::parse` does unless the policy writes its
/// own, which may begin with `check_form(self.fields(context), submission)`.
///
/// # Errors
/// Every field that is wrong, and every key that is not a field.
pub fn check_form(
    fields: Result<Vec<Field>, Error>,
    submission: &Options,
) -> Result<Options, Vec<FieldError>> {
    check(&fields.map_err(no_form)?, submission)
}

/// Converts the reason why there is no form to errors of the submission.
fn no_form(error: Error) -> Vec<FieldError> {
    match error {
        Error::Denied(denial) => vec![FieldError::new("", denial.message)],
        Error::Invalid(errors) => errors,
        Error::RetryLater(seconds) => vec![FieldError::new("", format!("try again in {seconds} s"))],
        Error::Internal(message) => {
            crate::host::error(&message);
            vec![FieldError::new("", "the form is not available at the moment")]
        }
    }
}

/// Checks a submission and returns complete options: every visible field, with its default if it was not submitted.
/// Texts are converted to the type of their field, because browsers submit only texts.
///
/// # Errors
/// All fields that are wrong, and all keys that are not fields.
pub fn check(fields: &[Field], submission: &Options) -> Result<Options, Vec<FieldError>> {
    let mut options = Options::default();
    let mut errors = Vec::new();
    for field in fields {
        if !visible(field.visible_when.as_ref(), &options) {
            continue;
        }
        match value(field, submission.get(&field.name)) {
            Ok(Some(value)) => options.insert(&field.name, value),
            Ok(None) => {}
            Err(message) => errors.push(FieldError::new(&field.name, message)),
        }
    }
    for (name, _) in submission.iter() {
        if !fields.iter().any(|field| field.name == name) {
            errors.push(FieldError::new(name, "is not a field of this form"));
        }
    }
    if errors.is_empty() { Ok(options) } else { Err(errors) }
}

/// True if the condition holds. A field may only depend on fields before it.
fn visible(condition: Option<&Condition>, options: &Options) -> bool {
    let Some(Condition { field, values }) = condition else { return true };
    options.get(field).is_some_and(|value| values.contains(&text_of(value)))
}

fn value(field: &Field, submitted: Option<&Value>) -> Result<Option<Value>, String> {
    match &field.kind {
        FieldKind::Select(input) | FieldKind::Radio(input) => choice(input, field.required, submitted),
        FieldKind::Checkbox(default) => checkbox(*default, submitted).map(Some),
        FieldKind::Text(input) => text(input, field.required, submitted).map(Some),
        FieldKind::Number(input) => number(input, submitted).map(Some),
    }
}

fn choice(input: &ChoiceInput, required: bool, submitted: Option<&Value>) -> Result<Option<Value>, String> {
    let chosen = submitted.map(text_of).or_else(|| input.default.clone());
    match chosen {
        None if required => Err("choose one".into()),
        None => Ok(None),
        Some(value) if input.choices.iter().any(|choice| choice.value == value) => {
            Ok(Some(Value::Text(value)))
        }
        Some(_) => Err(format!("is not offered; choose one of {}", offered(input))),
    }
}

fn offered(input: &ChoiceInput) -> String {
    let mut values: Vec<_> = input.choices.iter().take(10).map(|choice| choice.value.as_str()).collect();
    if input.choices.len() > values.len() {
        values.push("...");
    }
    values.join(", ")
}

fn checkbox(default: bool, submitted: Option<&Value>) -> Result<Value, String> {
    match submitted {
        None => Ok(Value::Boolean(default)),
        Some(Value::Boolean(on)) => Ok(Value::Boolean(*on)),
        Some(Value::Text(text)) => match text.as_str() {
            "true" | "on" | "1" => Ok(Value::Boolean(true)),
            "false" | "off" | "0" | "" => Ok(Value::Boolean(false)),
            _ => Err("must be true or false".into()),
        },
        Some(_) => Err("must be true or false".into()),
    }
}

fn text(input: &TextInput, required: bool, submitted: Option<&Value>) -> Result<Value, String> {
    let text = match submitted {
        None => input.default.clone(),
        Some(Value::Text(text)) => text.clone(),
        Some(_) => return Err("must be text".into()),
    };
    if required && text.trim().is_empty() {
        return Err("must not be empty".into());
    }
    match input.max_length {
        Some(limit) if text.chars().count() > limit as usize => {
            Err(format!("is longer than {limit} characters"))
        }
        _ if text.chars().any(char::is_control) => Err("must be one line without control characters".into()),
        _ => Ok(Value::Text(text)),
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "checked to be small and whole"
)]
fn number(input: &NumberInput, submitted: Option<&Value>) -> Result<Value, String> {
    let number = match submitted {
        None => input.default,
        Some(Value::Number(number)) => *number,
        Some(Value::Integer(number)) => *number as f64,
        Some(Value::Text(text)) => text.trim().parse().map_err(|_| "must be a number".to_owned())?,
        Some(Value::Boolean(_)) => return Err("must be a number".into()),
    };
    if !number.is_finite() {
        return Err("must be a number".into());
    }
    match (input.minimum, input.maximum) {
        (Some(minimum), _) if number < minimum => return Err(format!("must be at least {minimum}")),
        (_, Some(maximum)) if number > maximum => return Err(format!("must be at most {maximum}")),
        _ => {}
    }
    let whole = number.fract() == 0.0 && number.abs() < 9e15;
    Ok(if whole { Value::Integer(number as i64) } else { Value::Number(number) })
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Boolean(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Number(value) => value.to_string(),
        Value::Text(value) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::Choice;

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
        let options =
            submit(&[("size", "gpu".into()), ("gpus", "2".into()), ("debug", "on".into())]).unwrap();
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
}
