//! `form`: creates the spawn form, and turns a submission of it into options.

use serde_json::{Value, json};
use wasmspawner_core::config::grants::Grants;
use wasmspawner_core::policy::form::{
    self, Choice, ChoiceInput, Condition, Field, FieldKind, Form, FormContext, NumberInput, TextInput,
};
use wasmspawner_core::policy::{Options, Subject};

use super::{About, Asked, Exports, Question, call, input, invalid, refusal};
use crate::contract::bindings::hooks::form as wit;
use crate::contract::convert::{option_entries, options, user};
use crate::contract::guest::Calling;
use crate::errors::CallErrorKind;
use crate::names::hook::Hook;
use crate::names::policy_name::PolicyName;

/// Asks for the spawn form. The last policy that has a form answers.
#[derive(Clone)]
pub(crate) struct RenderForm {
    pub(crate) context: FormContext,
    /// The submission with which the server was last started.
    pub(crate) last_options: Options,
}

impl RenderForm {
    /// Asks for the form of a server that was never started.
    pub(crate) fn first(context: FormContext) -> Self {
        Self { context, last_options: Options::new() }
    }
}

impl Question for RenderForm {
    const HOOK: Hook = Hook::new("form.render");
    const ASKED: Asked = Asked::Last;
    const SKIPPABLE: bool = true;

    type Interface = wit::GuestIndices;
    type Answer = Form;

    fn interface(exports: &Exports) -> Option<&wit::GuestIndices> {
        exports.form.as_ref()
    }

    fn call(&self, interface: &wit::GuestIndices) -> Calling<Form> {
        let context = form_context(&self.context);
        call!(interface, |exports, store| exports.call_render(&mut store, &context), |answer| {
            answer.map(form).map_err(refusal)
        })
    }

    /// Checks that the form needs no grant that the policy lacks, and that it can be filled in.
    fn check(form: Form, policy: &PolicyName, grants: &Grants) -> Result<Form, CallErrorKind> {
        form::check_grant(policy.as_str(), &form, grants).map_err(CallErrorKind::NotGranted)?;
        form::check(&form).map_err(CallErrorKind::unusable_form)?;
        Ok(form)
    }

    fn about(&self) -> About {
        About {
            subject: Subject { last_options: self.last_options.clone(), ..Subject::default() },
            ..About::default()
        }
    }

    fn input(&self) -> Option<Value> {
        let mut input = input::of_user(&self.context.user, &self.context.server);
        input["last_options"] = json!(self.last_options);
        Some(input)
    }
}

/// Asks for the options in a submission of the form. The policy that creates the form answers.
#[derive(Clone)]
pub(crate) struct ParseForm {
    pub(crate) submission: Options,
    pub(crate) context: FormContext,
}

impl Question for ParseForm {
    const HOOK: Hook = Hook::new("form.parse");
    const ASKED: Asked = Asked::Last;

    type Interface = wit::GuestIndices;
    type Answer = Options;

    fn interface(exports: &Exports) -> Option<&wit::GuestIndices> {
        exports.form.as_ref()
    }

    fn call(&self, interface: &wit::GuestIndices) -> Calling<Options> {
        let (submission, context) = (option_entries(&self.submission), form_context(&self.context));
        call!(interface, |exports, store| exports.call_parse(&mut store, &submission, &context), |answer| {
            answer.map(options).map_err(invalid)
        })
    }

    fn input(&self) -> Option<Value> {
        Some(input::with_options(input::of_user(&self.context.user, &self.context.server), &self.submission))
    }
}

fn form_context(context: &FormContext) -> wit::FormContext {
    wit::FormContext { user: user(&context.user), server: context.server.clone() }
}

fn form(form: wit::Form) -> Form {
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
        notice: None,
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
