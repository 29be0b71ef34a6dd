//! Policies that are looked at by the command line, and not used.

pub(crate) mod hook_alone;
pub(crate) mod inspect;
pub(crate) mod pushed;
