//! Tests of a kubelet with an API server.

mod cluster;
mod process;
mod simulated;
