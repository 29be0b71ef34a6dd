//! The WIT package: the hooks of a component, and the imports available to it.

pub(crate) mod call;
pub(crate) mod call_state;
pub(crate) mod hook_table;
pub(crate) mod package;
