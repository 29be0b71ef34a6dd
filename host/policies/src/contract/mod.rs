//! The WIT package: the hooks of a component, and the imports available to it.
//!
//! The generated types stay in this module: `hooks` calls a policy with the core's types, `imports` offers the host's
//! functions, and `convert` converts the types that several of them use.

mod bindings;
pub(crate) mod call_state;
mod convert;
pub(crate) mod guest;
pub(crate) mod hooks;
mod imports;
pub(crate) mod package;
