//! Attacks on the service as a process. There is one module for each adversary, in the order of `SECURITY.md`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod stranger;
mod tenant;
mod user;

use wasmspawner_tests::service::Service;

/// The service under test.
const BINARY: &str = env!("CARGO_BIN_EXE_wasmspawner-under-test");

/// Resident memory of the service in MiB.
fn resident(service: &Service) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.pid().unwrap())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}
