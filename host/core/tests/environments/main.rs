//! Claims, targets and classes: every rule by itself, and all of them under random schedules.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod checks;
mod cluster;
mod provisioned_namespaces;
mod rules;
mod schedules;
