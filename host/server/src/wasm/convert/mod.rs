//! Generated types to and from the core's plain ones. Total: checks on answers belong to the core.

mod authorize;
mod form;
mod pod;
mod quota;
mod user;

pub(super) use authorize::{authorize_request, verdict};
pub(super) use form::{form, form_context};
pub(super) use pod::{customization, lab_request};
pub(super) use quota::{quota, usage};
pub(super) use user::{field_errors, hook_error, option_entries, options, user};
