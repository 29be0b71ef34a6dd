//! The spawn form: its fields, its rendering, and how a submission becomes options.

mod check;
mod escape;
mod field;
mod input;
mod layout;
mod render;
mod script;
mod submission;

pub use check::{check, check_grant};
pub use field::{
    Choice, ChoiceInput, Condition, Field, FieldKind, Form, FormContext, NumberInput, TextInput,
};
pub use render::render;
pub use submission::options;

impl Form {
    /// The form of a site in which no policy has one: nothing to choose. It renders as nothing, at which JupyterHub
    /// starts the lab without asking.
    pub fn without_options() -> Self {
        Self::Fields(Vec::new())
    }
}
