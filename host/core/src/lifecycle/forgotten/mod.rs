//! Forgotten labs: labs that JupyterHub no longer knows. Their users cannot reach them, and the Hub will not stop them.
//!
//! `listing` reads the Hub's list of servers and checks that it is complete. `check` compares that list with the
//! existing labs and decides which have been forgotten for long enough to be stopped.

mod check;
mod listing;

pub use check::{Check, ForgottenLab, ForgottenRules, ImplausibleResult, KnownLab, Tracker};
pub use listing::{HubServers, IncompleteList, Listing, UserPage, missing_scopes};
