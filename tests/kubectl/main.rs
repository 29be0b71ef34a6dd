//! kubectl as a client of the embedded API server, over loopback.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "what is skipped is told")]

mod logs;
mod session;
mod shell;
