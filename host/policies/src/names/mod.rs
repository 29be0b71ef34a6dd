//! Names of policies and hooks, and texts of policies that are fit for a message.

pub(crate) mod hook;
pub(crate) mod message;
pub(crate) mod policy_name;
