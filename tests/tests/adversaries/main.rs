//! Attacks on the service as a process. There is one module for each adversary, in the order of `SECURITY.md`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod stranger;

/// The service under test.
const BINARY: &str = env!("CARGO_BIN_EXE_wasmspawner-under-test");
