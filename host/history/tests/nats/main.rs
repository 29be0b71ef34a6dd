//! The history in a real NATS: what others read, and what goes wrong.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "a test fails by panicking, and says if it is skipped"
)]

// The black-box tests start the same server. They depend on the service, which depends on this crate.
#[allow(unreachable_pub, missing_docs, reason = "it is a part of another crate")]
#[path = "../../../../tests/src/nats.rs"]
mod server;

mod logins;
mod others;
mod outages;
mod setup;
mod sharing;
