//! The spawn form: its fields, its rendering, and how a submission becomes options.

mod field;

pub use field::{
    Choice, ChoiceInput, Condition, Field, FieldKind, Form, FormContext, NumberInput, TextInput,
};
