//! What the service adds to what it does: many spawns at once against a bare client that creates the same objects in
//! the same cluster, and one lab's events with many readers against few.
//!
//! `cargo bench -p wasmspawner-tests --bench spawn_load [-- LABS [READERS]]`
//!
//! The service is a process of its own with the one-machine cluster inside, so that its CPU time includes the
//! cluster's: what the floor costs that process is the cluster's share. Times are told, never judged; that every lab
//! came up and every reader read everything is.

#![allow(clippy::print_stdout, reason = "a benchmark talks to its reader")]

mod floor;
mod open_files;
mod readers;
mod rounds;
mod spawns;
mod usage;

use wasmspawner_tests::service::Service;

/// The service.
const BINARY: &str = env!("CARGO_BIN_EXE_wasmspawner-under-test");

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse::<usize>().ok());
    let labs = numbers.next().unwrap_or(200);
    let wanted = numbers.next().unwrap_or(2000);
    let connections = open_files::allow(wanted.max(labs))?;
    println!("load average {}", usage::load_average()?);
    rounds::measure(labs.min(connections)).await?;
    if connections < wanted {
        println!("no more than {connections} readers: the limit of open files (ulimit -Hn) allows no more");
    }
    readers::measure(wanted.min(connections)).await?;
    println!("load average {}", usage::load_average()?);
    Ok(())
}

/// A service whose pods take no time unless their user's name says so.
async fn service(policy: serde_json::Value) -> anyhow::Result<Service> {
    Service::start_with(BINARY, |config| {
        config["embedded"]["simulated"] = serde_json::json!({ "ready": "0s" });
        // The certificate of the one-machine cluster is for this address.
        config["embedded"]["listen"] = serde_json::json!("127.0.0.1:0");
        config["telemetry"] = serde_json::json!({});
        config["policies"] = serde_json::json!([policy]);
    })
    .await
}
