//! Conversions of the types that several hooks and imports use. They never fail, because the core checks the answers.

mod subject;
mod user;

pub(super) use subject::{blueprint, child, past_use, present_use};
pub(super) use user::{denial, field_errors, hook_error, option_entries, options, user};
