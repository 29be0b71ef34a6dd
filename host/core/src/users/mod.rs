//! Users: who they are, their tokens and scopes, and their quotas.

pub mod access;
pub mod identity;
pub mod quota;
pub mod token;
