//! The service while its Kubernetes API server fails. A proxy between the two makes requests and watches fail as a test
//! requires. The cluster is the one-machine cluster with simulated pods in the test's own process. The most important
//! cases also run on a real Kubernetes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "skipped tests and the seed are printed")]

mod kubernetes;
mod outage;
mod requests;
mod setup;
mod soak;
mod watches;

/// The service under test.
const BINARY: &str = env!("CARGO_BIN_EXE_wasmspawner-under-test");
