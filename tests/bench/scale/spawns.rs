//! Many spawns and stops at once through the REST API.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::json;
use tokio::task::JoinSet;
use wasmspawner_tests::api::{Answer, Client, PREFIX};

/// Starts this number of labs at once and reads each lab's events to the end. Returns the time that took.
pub(crate) async fn run(admin: &Client, labs: usize) -> anyhow::Result<Duration> {
    all((0..labs).map(|number| start(admin.clone(), user(number)))).await
}

/// Stops this number of labs at once and reads each lab's events to the end. Returns the time that took.
pub(crate) async fn stop_all(admin: &Client, labs: usize) -> anyhow::Result<Duration> {
    let took = all((0..labs).map(|number| stop(admin.clone(), user(number)))).await?;
    gone(admin).await?;
    Ok(took)
}

async fn all(
    tasks: impl Iterator<Item = impl Future<Output = anyhow::Result<()>> + Send + 'static>,
) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let mut running: JoinSet<_> = tasks.collect();
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    Ok(begun.elapsed())
}

/// Starts one lab, and waits until the spawn is complete.
pub(crate) async fn start(admin: Client, user: String) -> anyhow::Result<()> {
    let mut answer = admin.spawn(&user).await?;
    while let Some(pause) = asked_to_come_back(&answer)? {
        tokio::time::sleep(pause).await;
        answer = admin.spawn(&user).await?;
    }
    anyhow::ensure!(answer.status == 303, "{user} was refused: {answer:?}");
    complete(&admin, &user).await
}

/// Stops a lab, and waits until the stop is complete.
pub(crate) async fn stop(admin: Client, user: String) -> anyhow::Result<()> {
    let mut answer = admin.stop(&user).await?;
    while let Some(pause) = asked_to_come_back(&answer)? {
        tokio::time::sleep(pause).await;
        answer = admin.stop(&user).await?;
    }
    anyhow::ensure!(answer.status == 202, "{user} was not stopped: {answer:?}");
    complete(&admin, &user).await
}

/// The pause that the service requests before another attempt (503 with `Retry-After`), which a Hub would make, too: an
/// API server that has to create a thousand labs may take longer for the last record than the time limit of a request.
fn asked_to_come_back(answer: &Answer) -> anyhow::Result<Option<Duration>> {
    let Some(pause) = answer.headers.get("retry-after").filter(|_| answer.status == 503) else {
        return Ok(None);
    };
    Ok(Some(Duration::from_secs(pause.to_str()?.parse()?)))
}

async fn complete(admin: &Client, user: &str) -> anyhow::Result<()> {
    let mut events = admin.events(user).await?;
    let mut last = None;
    while let Some(event) = events.next().await? {
        last = Some(event);
    }
    let last = last.context("a stream without events")?;
    anyhow::ensure!(last.kind == "complete", "{user} ended otherwise: {last:?}");
    Ok(())
}

/// Waits until there are no labs.
pub(crate) async fn gone(admin: &Client) -> anyhow::Result<()> {
    let mut again = tokio::time::interval(Duration::from_millis(100));
    while admin.get(&format!("{PREFIX}/labs?status=all")).await?.json()? != json!([]) {
        again.tick().await;
    }
    Ok(())
}

fn user(number: usize) -> String {
    format!("user{number}")
}
