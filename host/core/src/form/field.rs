use serde::{Deserialize, Serialize};

use crate::policy::User;

/// For whom, and for which of their servers, a form is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormContext {
    /// Who will see it.
    pub user: User,
    /// Which of their servers; `""` is the default one.
    #[serde(default)]
    pub server: String,
}

/// One of several values to choose from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// What is submitted.
    pub value: String,
    /// What people read.
    pub label: String,
    /// A second line below or beside the label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The choices of a select or radio field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChoiceInput {
    /// In the order shown.
    pub choices: Vec<Choice>,
    /// The value chosen at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// A line of text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TextInput {
    /// The text at first.
    pub default: String,
    /// Shown while it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<String>,
    /// In characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u32>,
    /// A regular expression of HTML (ECMAScript, the whole value), checked by the browser only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

/// A number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NumberInput {
    /// The number at first.
    pub default: f64,
    /// Smallest allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<f64>,
    /// Largest allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<f64>,
    /// Distance of allowed numbers; absent for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
}

/// What kind of input a field is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldKind {
    /// A drop-down list.
    Select(ChoiceInput),
    /// Cards, all visible.
    Radio(ChoiceInput),
    /// On or off; the value is the one at first.
    Checkbox(bool),
    /// A line of text.
    Text(TextInput),
    /// A number.
    Number(NumberInput),
}

/// Shows a field only while another field has one of these values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Name of the other field.
    pub field: String,
    /// Its values, as submitted (`true` and `false` for a checkbox).
    pub values: Vec<String>,
}

/// A field of the form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// The key in `options`.
    pub name: String,
    /// What people read.
    pub label: String,
    /// A line of help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Fields of one group stand together below its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The browser insists on a value.
    #[serde(default)]
    pub required: bool,
    /// When it is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visible_when: Option<Condition>,
    /// Which input it is.
    pub kind: FieldKind,
}

/// A spawn form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Rendered by the service.
    Fields(Vec<Field>),
    /// The policy's own markup, a fragment inside the Hub's `<form>`. Needs the grant `raw-html`.
    Html(String),
}
