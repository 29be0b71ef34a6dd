//! Many spawns at once through the REST API.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::json;
use tokio::task::JoinSet;
use wasmspawner_tests::api::{Client, PREFIX};

/// Starts so many labs at once and reads the events of each until it is complete; answers how long that took.
pub(crate) async fn run(admin: &Client, labs: usize) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let mut starting: JoinSet<_> = (0..labs).map(|number| start(admin.clone(), user(number))).collect();
    while let Some(started) = starting.join_next().await {
        started??;
    }
    Ok(begun.elapsed())
}

/// Starts one lab, and waits until it is complete.
pub(crate) async fn start(admin: Client, user: String) -> anyhow::Result<()> {
    let events = admin.spawn_to_end(&user).await?;
    let last = events.last().context("a stream without events")?;
    anyhow::ensure!(last.kind == "complete", "{user} did not start: {events:#?}");
    Ok(())
}

/// Stops all labs, and waits until none is left.
pub(crate) async fn clear(admin: &Client, labs: usize) -> anyhow::Result<()> {
    let mut stopping: JoinSet<_> = (0..labs).map(|number| stop(admin.clone(), user(number))).collect();
    while let Some(stopped) = stopping.join_next().await {
        stopped??;
    }
    gone(admin).await
}

/// Stops a lab.
pub(crate) async fn stop(admin: Client, user: String) -> anyhow::Result<()> {
    let answer = admin.stop(&user).await?;
    anyhow::ensure!(answer.status == 202, "{user} was not stopped: {answer:?}");
    Ok(())
}

/// Waits until there is no lab.
pub(crate) async fn gone(admin: &Client) -> anyhow::Result<()> {
    let mut again = tokio::time::interval(Duration::from_millis(50));
    while admin.get(&format!("{PREFIX}/labs?status=all")).await?.json()? != json!([]) {
        again.tick().await;
    }
    Ok(())
}

fn user(number: usize) -> String {
    format!("user{number}")
}
