use serde::{Deserialize, Serialize};

use crate::policy::User;

/// The user and server that a form is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormContext {
    /// The user who will see the form.
    pub user: User,
    /// Name of the user's server; `""` is the default server.
    #[serde(default)]
    pub server: String,
}

/// One of the values that a field offers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The value that is submitted.
    pub value: String,
    /// The text that is shown.
    pub label: String,
    /// A second line, shown below or beside the label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The choices of a select or radio field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChoiceInput {
    /// The choices, in the order in which they are shown.
    pub choices: Vec<Choice>,
    /// The value that is selected initially.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// A line of text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TextInput {
    /// The initial text.
    pub default: String,
    /// Text shown while the field is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<String>,
    /// Largest length in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u32>,
    /// A pattern in the syntax of HTML (ECMAScript, matched against the whole value). The browser checks it, and the
    /// policy checks it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

/// A number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NumberInput {
    /// The initial number.
    pub default: f64,
    /// Smallest allowed number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<f64>,
    /// Largest allowed number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<f64>,
    /// Distance between allowed numbers, which begin at `minimum`, or else at `default`. Absent if any number is
    /// allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
}

/// The kind of input of a field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldKind {
    /// A drop-down list.
    Select(ChoiceInput),
    /// A line of text with suggestions, which can be searched. The typed text need not be one of them.
    Search(ChoiceInput),
    /// Cards that are all visible, each with a radio button.
    Radio(ChoiceInput),
    /// A switch. The boolean is its initial value.
    Checkbox(bool),
    /// A line of text.
    Text(TextInput),
    /// A number.
    Number(NumberInput),
}

/// A condition that shows a field only while another field has one of these values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Name of the other field.
    pub field: String,
    /// Values of that field, as submitted (`true` and `false` for a checkbox).
    pub values: Vec<String>,
}

/// A field of the form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// The field's key in `options`.
    pub name: String,
    /// The text that is shown beside the input.
    pub label: String,
    /// A line of help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Title of a group. Fields of the same group are shown together below that title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// True if a value is required.
    #[serde(default)]
    pub required: bool,
    /// The condition under which the field is shown; absent for always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visible_when: Option<Condition>,
    /// The kind of input.
    pub kind: FieldKind,
    /// A line about the last choice, which is not available any more. Policies give none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// A spawn form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Fields that the service renders.
    Fields(Vec<Field>),
    /// The policy's own HTML, a fragment inside the Hub's `<form>`. Needs the grant `raw-html`.
    Html(String),
}
