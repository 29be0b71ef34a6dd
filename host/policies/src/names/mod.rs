//! Names of policies, and their messages.

pub(crate) mod message;
pub(crate) mod policy_name;
