//! Answers of this policy, run natively, for `tests/profiles`: loading a component with a configuration of its own takes
//! seconds, and there are hundreds of configurations.
//!
//! Standard input is a JSON list of `{"config": .., "user": "ada", "groups": [..], "submissions": [{..}]}`. Standard output is a list of
//! `{"problems": [..]}` for a configuration that is refused, and otherwise `{"fields": [..], "answers": [..]}` with an
//! answer for each submission: `{"errors": [..]}`, or `{"options": .., "lab": .., "port": ..}`. A lab has the form that
//! `wasmspawner policy run` prints.

mod lab;

use std::io::{self, Write as _};

use policy_default::DefaultPolicy;
use serde::Deserialize;
use serde_json::{Value, json};
use wasmspawner_sdk::form::{Choice, Field, FieldKind};
use wasmspawner_sdk::testing::TestKit;
use wasmspawner_sdk::{Denial, Error, FieldError, Options, User, bindings};

#[derive(Deserialize)]
struct Site {
    config: Value,
    user: String,
    #[serde(default)]
    groups: Vec<String>,
    submissions: Vec<Value>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sites: Vec<Site> = serde_json::from_reader(io::stdin().lock())?;
    let answers: Vec<Value> = sites.iter().map(Site::answer).collect();
    serde_json::to_writer(io::stdout().lock(), &answers)?;
    io::stdout().flush()?;
    Ok(())
}

impl Site {
    fn answer(&self) -> Value {
        let policy = match TestKit::<DefaultPolicy>::new(&self.config) {
            Ok(policy) => policy,
            Err(problems) => return json!({"problems": errors(&problems)}),
        };
        let user = self.groups.iter().fold(User::named(&self.user), |user, group| user.in_group(group));
        let fields = match policy.fields(&user) {
            Ok(fields) => fields.iter().map(field).collect(),
            Err(error) => vec![refusal(error)],
        };
        let answers: Vec<_> = self.submissions.iter().map(|given| answer(&policy, &user, given)).collect();
        json!({"fields": fields, "answers": answers})
    }
}

fn answer(policy: &TestKit<DefaultPolicy>, user: &User, submission: &Value) -> Value {
    let options = match policy.parse(user, submission) {
        Ok(options) => options,
        Err(found) => return json!({"errors": errors(&found)}),
    };
    let lab = match policy.customize_with(user, &options) {
        Ok(lab) => lab::json(&lab),
        Err(error) => return refusal(error),
    };
    let options = as_json(&options);
    match policy.lab_server(user, &options) {
        Ok(settings) => json!({"options": options, "lab": lab, "port": settings.port}),
        Err(error) => refusal(error),
    }
}

fn refusal(error: Error) -> Value {
    match error {
        Error::Invalid(found) => json!({"errors": errors(&found)}),
        Error::Denied(Denial { message, .. }) | Error::Internal(message) => json!({"errors": [message]}),
        Error::RetryLater(seconds) => json!({"errors": [format!("retry in {seconds} s")]}),
    }
}

fn errors(found: &[FieldError]) -> Vec<String> {
    found.iter().map(|error| format!("{}: {}", error.field, error.message)).collect()
}

fn field(field: &Field) -> Value {
    let choices = |choices: &[Choice]| -> Vec<_> {
        choices.iter().map(|choice| json!([choice.value, choice.label])).collect()
    };
    let mut shown = json!({"name": field.name, "label": field.label, "help": field.help});
    match &field.kind {
        FieldKind::Select(input) | FieldKind::Radio(input) => {
            shown["choices"] = choices(&input.choices).into();
            shown["default"] = input.default.clone().into();
        }
        FieldKind::Text(input) => shown["pattern"] = input.pattern.clone().into(),
        FieldKind::Checkbox(_) | FieldKind::Number(_) => {}
    }
    shown
}

fn as_json(options: &Options) -> Value {
    use bindings::types::Value as Given;
    let value = |value: &Given| match value {
        Given::Boolean(value) => json!(value),
        Given::Integer(value) => json!(value),
        Given::Number(value) => json!(value),
        Given::Text(value) => json!(value),
    };
    options.iter().map(|(name, given)| (name.to_owned(), value(given))).collect()
}
