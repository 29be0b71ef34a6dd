//! The spawn form: its fields, their rendering as HTML, and the conversion of a submission to options.

mod check;
mod escape;
mod field;
mod image_fields;
mod input;
mod last_choices;
mod layout;
mod render;
mod script;
mod submission;

pub use check::{check, check_grant};
pub use field::{
    Choice, ChoiceInput, Condition, Field, FieldKind, Form, FormContext, NumberInput, TextInput,
};
pub use image_fields::image_fields;
pub use last_choices::{follow_image, preselect};
pub use render::render;
pub use submission::options;

impl Form {
    /// The form of a site whose policies offer nothing to choose. It renders as an empty text, so that JupyterHub
    /// starts the lab without showing a form.
    pub fn without_options() -> Self {
        Self::Fields(Vec::new())
    }
}
