//! Many spawns and stops at once through the REST API.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::json;
use tokio::task::JoinSet;
use wasmspawner_tests::api::{Answer, Client, PREFIX};

/// Starts so many labs at once and reads the events of each until it is complete; answers how long that took.
pub(crate) async fn run(admin: &Client, labs: usize) -> anyhow::Result<Duration> {
    all((0..labs).map(|number| start(admin.clone(), user(number)))).await
}

/// Stops as many at once, and reads the events of each until it is complete; answers how long that took.
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

/// Starts one lab, and waits until it is complete.
pub(crate) async fn start(admin: Client, user: String) -> anyhow::Result<()> {
    let answer = asked(async || admin.spawn(&user).await).await?;
    anyhow::ensure!(answer.status == 303, "{user} was refused: {answer:?}");
    complete(&admin, &user).await
}

/// Stops a lab, and waits until that is complete.
pub(crate) async fn stop(admin: Client, user: String) -> anyhow::Result<()> {
    let answer = asked(async || admin.stop(&user).await).await?;
    anyhow::ensure!(answer.status == 202, "{user} was not stopped: {answer:?}");
    complete(&admin, &user).await
}

/// Asks, and asks again when it is told to come back, as a Hub does: an API server that has a thousand labs to create
/// may take longer for the last record than anybody is kept waiting.
async fn asked(ask: impl AsyncFn() -> anyhow::Result<Answer>) -> anyhow::Result<Answer> {
    loop {
        let answer = ask().await?;
        let Some(pause) = answer.headers.get("retry-after").filter(|_| answer.status == 503) else {
            return Ok(answer);
        };
        tokio::time::sleep(Duration::from_secs(pause.to_str()?.parse()?)).await;
    }
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

/// Waits until there is no lab.
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
