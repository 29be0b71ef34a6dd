//! The WIT package: the hooks of a component, and what it may import.

pub(crate) mod call;
pub(crate) mod call_state;
pub(crate) mod hook_table;
pub(crate) mod package;
