//! Policies that the command line inspects, but does not use.

pub(crate) mod hook_alone;
pub(crate) mod inspect;
pub(crate) mod publish;
