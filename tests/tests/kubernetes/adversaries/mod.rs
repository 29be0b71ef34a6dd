//! What adversaries try on a real API server, one module for each.

pub(crate) mod stolen_token;
mod unreadable;
