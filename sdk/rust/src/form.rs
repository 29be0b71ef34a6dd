//! Fields of the spawn form.
//!
//! ```
//! use wasmspawner_sdk::form::{Choice, Field};
//!
//! let size = Field::radio("size", "Size", vec![Choice::new("small", "Small").describe("1 CPU, 2 GiB")])
//!     .default_choice("small")
//!     .group("Resources");
//! let debug = Field::checkbox("debug", "Verbose logs", false).help("Slower, but tells more");
//! ```

use crate::bindings::types::{Error, FieldError};
use crate::pattern;

pub use crate::bindings::form::{
    Choice, ChoiceInput, Condition, Field, FieldKind, Form, FormContext, NumberInput, TextInput,
};

impl Choice {
    /// A choice that submits `value` and is shown as `label`.
    pub fn new(value: impl Into<String>, label: impl Into<String>) -> Self {
        Self { value: value.into(), label: label.into(), description: None }
    }

    /// Adds a second line.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
}

impl Field {
    /// A field of any kind.
    pub fn new(name: impl Into<String>, label: impl Into<String>, kind: FieldKind) -> Self {
        Self {
            name: name.into(),
            label: label.into(),
            help: None,
            group: None,
            required: false,
            visible_when: None,
            kind,
        }
    }

    /// A drop-down list. The first choice is selected, unless [`Field::default_choice`] selects another.
    pub fn select(name: impl Into<String>, label: impl Into<String>, choices: Vec<Choice>) -> Self {
        Self::new(name, label, FieldKind::Select(first_chosen(choices)))
    }

    /// Choices that are all visible. The first is selected, unless [`Field::default_choice`] selects another.
    pub fn radio(name: impl Into<String>, label: impl Into<String>, choices: Vec<Choice>) -> Self {
        Self::new(name, label, FieldKind::Radio(first_chosen(choices)))
    }

    /// A switch.
    pub fn checkbox(name: impl Into<String>, label: impl Into<String>, on: bool) -> Self {
        Self::new(name, label, FieldKind::Checkbox(on))
    }

    /// A line of text.
    pub fn text(name: impl Into<String>, label: impl Into<String>, default: impl Into<String>) -> Self {
        let input = TextInput { default: default.into(), placeholder: None, max_length: None, pattern: None };
        Self::new(name, label, FieldKind::Text(input))
    }

    /// A number.
    pub fn number(name: impl Into<String>, label: impl Into<String>, input: NumberInput) -> Self {
        Self::new(name, label, FieldKind::Number(input))
    }

    /// Selects `value` initially. Has no effect on fields without choices.
    #[must_use]
    pub fn default_choice(mut self, value: impl Into<String>) -> Self {
        if let FieldKind::Select(input) | FieldKind::Radio(input) = &mut self.kind {
            input.default = Some(value.into());
        }
        self
    }

    /// Adds a line of help.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Puts the field below the title `group`, together with the other fields of that group.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Requires a value.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Shows the field only while `field` has one of `values`.
    #[must_use]
    pub fn visible_when(mut self, field: impl Into<String>, values: &[&str]) -> Self {
        let values = values.iter().map(|&value| value.into()).collect();
        self.visible_when = Some(Condition { field: field.into(), values });
        self
    }
}

impl Field {
    /// Checks that every rule of the field can be applied to a submission.
    ///
    /// # Errors
    /// The part of the field that cannot be checked: a pattern beyond [`pattern::check`], a step that is not above 0,
    /// or a range without a number.
    pub fn check(&self) -> Result<(), FieldError> {
        match &self.kind {
            FieldKind::Text(TextInput { pattern: Some(pattern), .. }) => {
                pattern::check(pattern).map_err(|problem| FieldError::new("pattern", problem))
            }
            FieldKind::Number(input) => check_number(input),
            _ => Ok(()),
        }
    }
}

impl Form {
    /// Returns the form if every rule of its fields can be applied to a submission.
    pub(crate) fn checked(self) -> Result<Self, Error> {
        if let Self::Fields(fields) = &self {
            check(fields)?;
        }
        Ok(self)
    }
}

/// Fails with the first field that cannot be checked.
pub(crate) fn check(fields: &[Field]) -> Result<(), Error> {
    let problem = fields.iter().find_map(|field| Some((field, field.check().err()?)));
    let Some((field, FieldError { field: part, message })) = problem else { return Ok(()) };
    Err(Error::Internal(format!("the form's field {} cannot be checked: {part}: {message}", field.name)))
}

fn check_number(input: &NumberInput) -> Result<(), FieldError> {
    let NumberInput { default, minimum, maximum, step } = input;
    for (part, number) in
        [("default", Some(default)), ("minimum", minimum.as_ref()), ("maximum", maximum.as_ref())]
    {
        if number.is_some_and(|number| !number.is_finite()) {
            return Err(FieldError::new(part, "must be a finite number"));
        }
    }
    if let Some(step) = step
        && !(step.is_finite() && *step > 0.0)
    {
        return Err(FieldError::new("step", "must be a number above 0"));
    }
    match (minimum, maximum) {
        (Some(minimum), Some(maximum)) if minimum > maximum => {
            Err(FieldError::new("minimum", "must not be above the maximum"))
        }
        _ => Ok(()),
    }
}

fn first_chosen(choices: Vec<Choice>) -> ChoiceInput {
    let default = choices.first().map(|choice| choice.value.clone());
    ChoiceInput { choices, default }
}
