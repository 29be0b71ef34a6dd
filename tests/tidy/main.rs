//! Rules of this repository that the compiler does not check. Each is a test whose message gives the reason.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod cycles;
mod dependencies;
mod files;
mod hooks;
mod named_tests;
mod pages;
mod tests;
mod tree;
mod words;

/// Fails with the rule's reason and all offences, unless there are none.
fn assert_rule(reason: &str, offences: &[String]) {
    assert!(offences.is_empty(), "\n{reason}\n  {}\n", offences.join("\n  "));
}
