//! Attacks on a real API server, one module for each adversary.

pub(crate) mod stolen_token;
mod unreadable;
