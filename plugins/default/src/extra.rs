use wasmspawner_sdk::form::{Choice, Field, FieldKind, NumberInput, TextInput};
use wasmspawner_sdk::pod::EnvVar;
use wasmspawner_sdk::{Error, Options, Section, User, Value};

use crate::profile::PROFILE;
use crate::{env, template};

/// Names that fields of the form already have.
const TAKEN: [&str; 3] = ["image", "size", PROFILE];

/// An additional field of the form, and the environment variables that it sets.
pub(crate) struct Extra {
    field: Field,
    groups: Vec<String>,
    effect: Effect,
}

enum Effect {
    /// Variables that are set while a checkbox is on.
    WhenOn(Vec<(String, String)>),
    /// The variable that receives the field's value.
    Value(Option<String>),
}

impl Extra {
    pub(crate) fn read_all(config: &mut Section<'_>) -> Vec<Self> {
        let mut names: Vec<String> = TAKEN.map(String::from).to_vec();
        config.list("options", |entry| {
            let extra = Self::read(entry);
            if names.contains(&extra.field.name) {
                entry.problem("name", format!("the form has a field `{}` already", extra.field.name));
            }
            names.push(extra.field.name.clone());
            extra
        })
    }

    fn read(entry: &mut Section<'_>) -> Self {
        let name: String = entry.required("name");
        let label = entry.optional("label").unwrap_or_else(|| name.clone());
        let kind: String = entry.optional("kind").unwrap_or_else(|| "checkbox".into());
        let (kind, effect) = match kind.as_str() {
            "checkbox" => {
                let variables = template::pairs(entry, "env");
                (FieldKind::Checkbox(entry.or_default("default")), Effect::WhenOn(variables))
            }
            "select" => (Self::select(entry), Effect::Value(entry.optional("env"))),
            "text" => (FieldKind::Text(text(entry)), Effect::Value(entry.optional("env"))),
            "number" => (FieldKind::Number(number(entry)), Effect::Value(entry.optional("env"))),
            _ => {
                entry.problem("kind", "must be checkbox, select, text or number");
                (FieldKind::Checkbox(false), Effect::Value(None))
            }
        };
        let field = Field {
            help: entry.optional("help"),
            group: Some("Options".into()),
            required: entry.or_default("required"),
            ..Field::new(name, label, kind)
        };
        if let Err(problem) = field.check() {
            entry.problem(&problem.field, problem.message);
        }
        Self { field, groups: entry.or_default("groups"), effect }
    }

    fn select(entry: &mut Section<'_>) -> FieldKind {
        let choices = entry.list("choices", |choice| {
            let value: String = choice.required("value");
            let label = choice.optional("label").unwrap_or_else(|| value.clone());
            Choice { value, label, description: choice.optional("description") }
        });
        if choices.is_empty() {
            entry.problem("choices", "needs at least one choice");
        }
        let default: Option<String> = entry.optional("default");
        if default.as_ref().is_some_and(|default| choices.iter().all(|choice| choice.value != *default)) {
            entry.problem("default", "is none of the choices");
        }
        let field = Field::select("", "", choices);
        default.map_or(field.clone(), |default| field.default_choice(default)).kind
    }

    pub(crate) fn name(&self) -> &str {
        &self.field.name
    }

    pub(crate) fn field(&self, user: &User) -> Option<Field> {
        let open = self.groups.is_empty() || user.is_in_any(&self.groups);
        open.then(|| self.field.clone())
    }

    /// Adds the variables of the chosen value. Texts of the operator are templates; text of the user is used unchanged.
    pub(crate) fn set(&self, options: &Options, env: &mut Vec<EnvVar>) -> Result<(), Error> {
        match (&self.effect, options.get(&self.field.name)) {
            (Effect::WhenOn(variables), Some(Value::Boolean(true))) => {
                for (name, template) in variables {
                    let mut text = template.clone();
                    template::fill(&mut text)?;
                    env::set(env, EnvVar::literal(name, text));
                }
            }
            (Effect::Value(Some(name)), Some(value)) => {
                env::set(env, EnvVar::literal(name, value.to_string()));
            }
            _ => {}
        }
        Ok(())
    }
}

fn text(entry: &mut Section<'_>) -> TextInput {
    TextInput {
        default: entry.or_default("default"),
        placeholder: entry.optional("placeholder"),
        max_length: entry.optional("max_length").or(Some(256)),
        pattern: entry.optional("pattern"),
    }
}

fn number(entry: &mut Section<'_>) -> NumberInput {
    NumberInput {
        default: entry.or_default("default"),
        minimum: entry.optional("minimum"),
        maximum: entry.optional("maximum"),
        step: entry.optional("step"),
    }
}
