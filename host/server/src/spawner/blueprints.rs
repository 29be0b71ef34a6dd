//! The blueprints of a lab: which one is chosen, and what it means.

use std::sync::Arc;

use wasmspawner_core::blueprint::{CHOICE, Library, Resolved};
use wasmspawner_core::form::{Choice, ChoiceInput, Field, FieldKind, Form, FormContext};
use wasmspawner_core::names::{ObjectName, ServerName};
use wasmspawner_core::policy::{FieldError, Options, User, Value};

use super::errors::SpawnError;

/// The blueprints that hold for a lab. What they say is put into the options in place of the choice, which policies do
/// not parse. `wanted` is the blueprint that the request names beside its options. A server of a blueprint's name is of
/// that blueprint, unless another one was chosen.
pub(super) fn choose(
    library: &Library,
    wanted: Option<&ObjectName>,
    options: &mut Options,
    server: &ServerName,
    user: &User,
) -> Result<Option<Arc<Resolved>>, SpawnError> {
    if library.is_empty() && wanted.is_none() {
        // The option may be one of a policy's form.
        return Ok(None);
    }
    let groups = user.group_names();
    let of_option = options.remove(CHOICE);
    let chosen = match (wanted, of_option) {
        (Some(wanted), _) => Some(wanted.clone()),
        (None, Some(Value::Text(text))) if text.is_empty() => None,
        (None, Some(value)) => Some(ObjectName::parse(value.to_string()).map_err(|error| refused(&error))?),
        (None, None) => of_server(library, server, &groups),
    };
    let resolved = library.resolve(chosen.as_ref(), &groups).map_err(|error| refused(&error))?;
    if let Some(resolved) = &resolved {
        for overlap in &resolved.overlaps {
            tracing::warn!(blueprint = resolved.label(), %overlap, "two blueprints disagree");
        }
        resolved.change(options);
    }
    Ok(resolved.map(Arc::new))
}

/// Notes the choice in the options that the policies have parsed.
pub(super) fn note(resolved: Option<&Resolved>, options: &mut Options) {
    if let Some(chosen) = resolved.and_then(|resolved| resolved.chosen.as_ref()) {
        options.insert(CHOICE.to_owned(), Value::Text(chosen.to_string()));
    }
}

/// The form with the user's blueprints before its fields. A policy's own HTML stays as it is, and so does the form of a server
/// whose name says which blueprint it is of.
pub(super) fn offer(library: &Library, context: &FormContext, form: Form) -> Form {
    let Form::Fields(fields) = form else { return form };
    let groups = context.user.group_names();
    let server = ServerName::parse(context.server.as_str()).unwrap_or_default();
    let mut choices = library.choices(&groups).peekable();
    if choices.peek().is_none() || of_server(library, &server, &groups).is_some() {
        return Form::Fields(fields);
    }
    let none = Choice { value: String::new(), label: "None".to_owned(), description: None };
    let choices = choices.map(|(name, spec)| Choice {
        value: name.to_string(),
        label: spec.display_name.clone().unwrap_or_else(|| name.to_string()),
        description: spec.description.clone(),
    });
    let field = Field {
        name: CHOICE.to_owned(),
        label: "Blueprint".to_owned(),
        help: Some("What a blueprint says counts over the choices below.".to_owned()),
        kind: FieldKind::Select(ChoiceInput {
            choices: [none].into_iter().chain(choices).collect(),
            default: Some(String::new()),
        }),
        group: None,
        required: false,
        visible_when: None,
    };
    Form::Fields([field].into_iter().chain(fields).collect())
}

/// The blueprint of the server's name that the user may choose.
fn of_server(library: &Library, server: &ServerName, groups: &[String]) -> Option<ObjectName> {
    library.choices(groups).map(|(name, _)| name).find(|name| name.as_str() == server.as_str()).cloned()
}

fn refused(problem: &impl std::error::Error) -> SpawnError {
    SpawnError::Invalid(vec![FieldError::new(CHOICE, problem.to_string())])
}
