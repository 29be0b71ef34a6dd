//! Benchmark of 2,000 readers of one lab's events: what they cost the service, and how much later than a single reader
//! the last of them receives the event that the lab is ready.
//!
//! `cargo bench -p wasmspawner-tests --bench readers`

#![allow(clippy::print_stdout, reason = "the figures are what it is for")]

use std::time::{Duration, Instant};

use futures::future::join_all;
use wasmspawner_tests::api::Client;
use wasmspawner_tests::service::Service;

const READERS: usize = 2000;
const BINARY: &str = env!("CARGO_BIN_EXE_wasmspawner-under-test");

/// Long enough for all readers to connect before the first event.
const LAB: &str = "ready.8s";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let service = Service::start(BINARY).await?;
    let user = service.user(LAB)?;
    let alone = run(&service, &user, 1).await?;
    let crowd = run(&service, &user, READERS).await?;
    let per_reader = crowd.cpu.saturating_sub(alone.cpu) / u32::try_from(READERS)?;
    println!("last of {READERS} readers after the first:  {:?}", crowd.spread);
    println!("CPU of the service a reader:          {per_reader:?}");
    println!(
        "resident memory per reader:           {} B",
        (crowd.rss_kib - alone.rss_kib) * 1024 / i64::try_from(READERS)?
    );
    println!("resident memory of the service:       {} MiB", crowd.rss_kib / 1024);
    Ok(())
}

struct Cost {
    spread: Duration,
    cpu: Duration,
    rss_kib: i64,
}

/// One spawn with this number of readers, and its stop.
async fn run(service: &Service, user: &Client, readers: usize) -> anyhow::Result<Cost> {
    let before = service.usage()?;
    anyhow::ensure!(user.spawn(LAB).await?.status == 303, "the spawn was refused");
    let ends = join_all((0..readers).map(|_| async {
        let events = user.events(LAB).await?.to_end().await?;
        anyhow::ensure!(events.last().is_some_and(|last| last.kind == "complete"), "{events:#?}");
        Ok(Instant::now())
    }))
    .await
    .into_iter()
    .collect::<anyhow::Result<Vec<_>>>()?;
    let after = service.usage()?;
    let (first, last) = (ends.iter().min(), ends.iter().max());
    let spread = last.zip(first).map(|(last, first)| last.duration_since(*first)).unwrap_or_default();
    user.stop(LAB).await?;
    user.events(LAB).await?.to_end().await?;
    Ok(Cost { spread, cpu: after.cpu.saturating_sub(before.cpu), rss_kib: after.peak_kib })
}
