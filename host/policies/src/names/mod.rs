//! Names of policies and hooks, and messages of policies.

pub(crate) mod hook;
pub(crate) mod message;
pub(crate) mod policy_name;
