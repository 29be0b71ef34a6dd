//! Labs that JupyterHub does not know any more: nobody can reach them, and nobody would stop them.
//!
//! `listing` is what the Hub says about its servers, and whether that can be believed; `check` compares it with the
//! labs there are, and says which of them have been forgotten for long enough to be stopped.

mod check;
mod listing;

pub use check::{Check, ForgottenLab, KnownLab, Rules, Tracker, Withheld};
pub use listing::{HubServers, IncompleteList, Listing, UserPage, missing_scopes};
