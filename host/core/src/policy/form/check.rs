//! Validates the form of a policy.

use std::collections::BTreeSet;

use super::{ChoiceInput, Field, FieldKind, Form};
use crate::config::grants::{Grant, GrantViolation, Grants, Need};
use crate::values::field_error::FieldError;

/// Checks a form: a policy needs a grant to put its own HTML on the Hub's page.
pub fn check_grant(policy: &str, form: &Form, grants: &Grants) -> Result<(), GrantViolation> {
    match form {
        Form::Html(_) if !grants.raw_html => {
            let need = Need { field: "html".to_owned(), grant: Grant::RawHtml, wanted: None };
            Err(need.violated_by(&format_args!("policy `{policy}`")))
        }
        _ => Ok(()),
    }
}

/// Validates a policy's form before it is shown. Names of fields and values of choices must be unique, and a condition
/// must refer to another field.
pub fn check(form: &Form) -> Result<(), Vec<FieldError>> {
    let Form::Fields(fields) = form else { return Ok(()) };
    let mut errors = Vec::new();
    let mut names = BTreeSet::new();
    for (at, field) in fields.iter().enumerate() {
        let mut refuse = |what: &str, problem: String| {
            errors.push(FieldError::new(format!("fields[{at}].{what}"), problem));
        };
        if field.name.is_empty() {
            refuse("name", "is empty".to_owned());
        } else if !names.insert(&field.name) {
            refuse("name", format!("{:?} is the name of another field too", field.name));
        }
        if field.label.is_empty() {
            refuse("label", "is empty; screen readers need a label".to_owned());
        }
        if let FieldKind::Select(input) | FieldKind::Radio(input) | FieldKind::Search(input) = &field.kind
            && let Some(problem) = choices(input)
        {
            refuse("kind", problem);
        }
        if let Some(problem) = condition(field, fields) {
            refuse("visible_when", problem);
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn choices(input: &ChoiceInput) -> Option<String> {
    let mut values = BTreeSet::new();
    if input.choices.is_empty() {
        return Some("has no choices".to_owned());
    }
    if let Some(twice) = input.choices.iter().find(|choice| !values.insert(&choice.value)) {
        return Some(format!("has the choice {:?} twice", twice.value));
    }
    let default = input.default.as_ref().filter(|default| !values.contains(default));
    default.map(|default| format!("has the default {default:?}, which is none of its choices"))
}

fn condition(field: &Field, fields: &[Field]) -> Option<String> {
    let when = field.visible_when.as_ref()?;
    if when.field == field.name {
        return Some("is about the field itself".to_owned());
    }
    let exists = fields.iter().any(|other| other.name == when.field);
    (!exists).then(|| format!("refers to {:?}, which is not a field of the form", when.field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_that_cannot_be_filled_in_is_refused_by_field() {
        let form: Form = serde_saphyr::from_str(
            r"
fields:
  - {name: '', label: x, kind: {checkbox: true}}
  - {name: a, label: '', kind: {checkbox: true}}
  - {name: a, label: A, kind: {text: {}}}
  - {name: b, label: B, kind: {radio: {choices: []}}}
  - {name: c, label: C, kind: {select: {choices: [{value: x, label: X}, {value: x, label: Y}]}}}
  - {name: d, label: D, kind: {select: {choices: [{value: x, label: X}], default: y}}}
  - {name: e, label: E, kind: {text: {}}, visible_when: {field: nope, values: [x]}}
  - {name: f, label: F, kind: {text: {}}, visible_when: {field: f, values: [x]}}
",
        )
        .unwrap();
        let errors = check(&form).unwrap_err();
        let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "fields[0].name",
                "fields[1].label",
                "fields[2].name",
                "fields[3].kind",
                "fields[4].kind",
                "fields[5].kind",
                "fields[6].visible_when",
                "fields[7].visible_when"
            ]
        );
        assert_eq!(check(&Form::without_options()), Ok(()));
    }

    #[test]
    fn html_needs_its_grant_and_fields_need_none() {
        let (html, fields) = (Form::Html("<p>".to_owned()), Form::Fields(Vec::new()));
        let granted = Grants { raw_html: true, ..Grants::default() };
        assert_eq!(check_grant("p", &html, &Grants::default()).unwrap_err().grant, Grant::RawHtml);
        assert_eq!(check_grant("p", &html, &granted), Ok(()));
        assert_eq!(check_grant("p", &fields, &Grants::default()), Ok(()));
    }
}
