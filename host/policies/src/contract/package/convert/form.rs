use wasmspawner_core::policy::form::{
    Choice, ChoiceInput, Condition, Field, FieldKind, Form, FormContext, NumberInput, TextInput,
};

use super::super::bindings::hooks::form as wit;
use super::user::user;

pub(in super::super) fn form_context(context: &FormContext) -> wit::FormContext {
    wit::FormContext { user: user(&context.user), server: context.server.clone() }
}

pub(in super::super) fn form(form: wit::Form) -> Form {
    match form {
        wit::Form::Fields(fields) => Form::Fields(fields.into_iter().map(field).collect()),
        wit::Form::Html(html) => Form::Html(html),
    }
}

fn field(field: wit::Field) -> Field {
    let condition = |when: wit::Condition| Condition { field: when.field, values: when.values };
    Field {
        name: field.name,
        label: field.label,
        help: field.help,
        group: field.group,
        required: field.required,
        visible_when: field.visible_when.map(condition),
        kind: kind(field.kind),
    }
}

fn kind(kind: wit::FieldKind) -> FieldKind {
    match kind {
        wit::FieldKind::Select(input) => FieldKind::Select(choices(input)),
        wit::FieldKind::Radio(input) => FieldKind::Radio(choices(input)),
        wit::FieldKind::Checkbox(on) => FieldKind::Checkbox(on),
        wit::FieldKind::Text(input) => FieldKind::Text(TextInput {
            default: input.default,
            placeholder: input.placeholder,
            max_length: input.max_length,
            pattern: input.pattern,
        }),
        wit::FieldKind::Number(input) => FieldKind::Number(NumberInput {
            default: input.default,
            minimum: input.minimum,
            maximum: input.maximum,
            step: input.step,
        }),
    }
}

fn choices(input: wit::ChoiceInput) -> ChoiceInput {
    let choice = |choice: wit::Choice| Choice {
        value: choice.value,
        label: choice.label,
        description: choice.description,
    };
    ChoiceInput { choices: input.choices.into_iter().map(choice).collect(), default: input.default }
}
