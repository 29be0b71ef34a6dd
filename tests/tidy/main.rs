//! Rules of this repository that no compiler knows. Each is a test, and says why it is there when it fails.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod circles;
mod dependencies;
mod files;
mod modules;
mod tests;
mod tree;
mod words;

/// Fails with the rule's reason and every offence.
fn hold(reason: &str, offences: &[String]) {
    assert!(offences.is_empty(), "\n{reason}\n  {}\n", offences.join("\n  "));
}
