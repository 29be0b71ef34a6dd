//! Checks a submission against the fields of a form.

mod number;
#[cfg(test)]
mod tests;

use crate::bindings::types::{Error, FieldError, Value};
use crate::form::{ChoiceInput, Condition, Field, FieldKind, TextInput};
use crate::options::Options;
use crate::pattern;

/// The maximum number of characters of a submitted text that a message repeats.
const SHOWN: usize = 64;
/// The maximum number of choices that a message lists.
const LISTED: usize = 10;

/// Checks the submission against the fields that this user sees. `Form::parse` does this unless the policy writes its
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
            errors.push(FieldError::new(name, "is not a field of this form; leave it out"));
        }
    }
    if errors.is_empty() { Ok(options) } else { Err(errors) }
}

/// True if the condition holds. A field may only depend on fields before it.
fn visible(condition: Option<&Condition>, options: &Options) -> bool {
    let Some(Condition { field, values }) = condition else { return true };
    options.get(field).is_some_and(|value| values.contains(&value.to_string()))
}

/// Returns the submitted value or else the default, checked against all rules of the field. `None` if the field has
/// neither.
fn value(field: &Field, submitted: Option<&Value>) -> Result<Option<Value>, String> {
    if let Err(FieldError { field: part, message }) = field.check() {
        crate::host::error(&format!("the form's field {} cannot be checked: {part}: {message}", field.name));
        return Err(format!("{} cannot be checked now: tell the operators of this site", field.label));
    }
    match &field.kind {
        FieldKind::Select(input) | FieldKind::Radio(input) => choice(field, input, submitted),
        FieldKind::Checkbox(default) => checkbox(field, *default, submitted).map(Some),
        FieldKind::Text(input) => text(field, input, submitted).map(Some),
        FieldKind::Number(input) => number::read(field, input, submitted).map(Some),
    }
}

/// The message about a wrong value: the problem and its remedy.
fn refused(field: &Field, value: &Value, remedy: impl std::fmt::Display) -> String {
    format!("{} cannot be {}: {remedy}", field.label, shown(value))
}

/// Formats a value for a message. A long text is cut, and a text with line breaks stays on one line.
fn shown(value: &Value) -> String {
    let Value::Text(text) = value else { return value.to_string() };
    let begin =
        text.chars().take(SHOWN).map(|char| if is_plain(char) { char } else { char::REPLACEMENT_CHARACTER });
    let end = if text.chars().nth(SHOWN).is_some() { "…" } else { "" };
    format!("\"{}{end}\"", begin.collect::<String>())
}

fn choice(field: &Field, input: &ChoiceInput, submitted: Option<&Value>) -> Result<Option<Value>, String> {
    let values: Vec<&str> = input.choices.iter().map(|choice| choice.value.as_str()).collect();
    // A required list whose first choice has an empty value asks for another choice, as in HTML.
    let asks = field.required && matches!(field.kind, FieldKind::Select(_)) && values.first() == Some(&"");
    let offered = if asks { &values[1..] } else { &values[..] };
    let chosen = submitted.map(Value::to_string).or_else(|| input.default.clone());
    match chosen {
        None if !field.required => Ok(None),
        Some(chosen) if offered.contains(&chosen.as_str()) => Ok(Some(Value::Text(chosen))),
        Some(chosen) if !chosen.is_empty() || !asks => {
            let value = submitted.cloned().unwrap_or(Value::Text(chosen));
            Err(refused(field, &value, format_args!("choose one of {}", listed(offered))))
        }
        _ => Err(format!("{} must not be empty: choose one of {}", field.label, listed(offered))),
    }
}

fn listed(values: &[&str]) -> String {
    let mut listed = values[..values.len().min(LISTED)].to_vec();
    if values.len() > LISTED {
        listed.push("...");
    }
    listed.join(", ")
}

fn checkbox(field: &Field, default: bool, submitted: Option<&Value>) -> Result<Value, String> {
    let on = match submitted {
        None => default,
        Some(Value::Boolean(on)) => *on,
        Some(Value::Text(text)) if matches!(text.as_str(), "true" | "on" | "1") => true,
        Some(Value::Text(text)) if matches!(text.as_str(), "false" | "off" | "0" | "") => false,
        Some(other) => return Err(refused(field, other, "it must be true or false")),
    };
    if field.required && !on {
        return Err(refused(field, &Value::Boolean(on), "it must be checked"));
    }
    Ok(Value::Boolean(on))
}

fn text(field: &Field, input: &TextInput, submitted: Option<&Value>) -> Result<Value, String> {
    let text = match submitted {
        None => input.default.clone(),
        Some(Value::Text(text)) => text.clone(),
        // The service converts the texts `true` and `false` to booleans.
        Some(Value::Boolean(on)) => on.to_string(),
        Some(other) => return Err(refused(field, other, "it must be text")),
    };
    let value = Value::Text(text.clone());
    if !text.chars().all(is_plain) {
        return Err(refused(field, &value, "it must be one line without control characters"));
    }
    if field.required && text.trim().is_empty() {
        return Err(format!("{} must not be empty: enter a text", field.label));
    }
    if let Some(limit) = input.max_length
        && text.chars().count() > limit as usize
    {
        return Err(refused(field, &value, format_args!("it must not be longer than {limit} characters")));
    }
    match &input.pattern {
        // A pattern does not apply to a field that is left empty, as in HTML.
        Some(pattern) if !text.is_empty() && !pattern::is_match(pattern, &text)? => {
            let help = field.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
            Err(refused(field, &value, format_args!("it must match the pattern {pattern}{help}")))
        }
        _ => Ok(value),
    }
}

/// True for characters that stay on their line and do not hide their neighbours.
fn is_plain(char: char) -> bool {
    !char.is_control() && !matches!(char, '\u{2028}' | '\u{2029}')
}
