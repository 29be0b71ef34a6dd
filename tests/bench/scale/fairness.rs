//! What many users notice of one who sends as many requests as the service takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use wasmspawner_tests::api::{Client, PREFIX};
use wasmspawner_tests::service::Service;

use crate::site;
use crate::usage::Usage;

/// The users who work as usual.
const USERS: usize = 20;
/// How often each of them sends a request.
const EVERY: Duration = Duration::from_millis(100);
/// The connections of the one who does not.
const CONNECTIONS: usize = 64;

/// Measures the others' times without the one user and with them, and prints both. Each part takes `seconds`.
pub(crate) async fn measure(seconds: u64) -> anyhow::Result<()> {
    let service = site::one_machine(site::ordinary()).await?;
    let pid = service.pid().context("the service has no process")?;
    println!("{USERS} users, a request of each every {} ms, in milliseconds", EVERY.as_millis());
    println!("                         requests     half      99 %   memory of service and cluster");
    // The first run warms up.
    work(&service, seconds.min(5)).await?;
    let alone = work(&service, seconds).await?;
    alone.print("alone", pid)?;

    let stop = CancellationToken::new();
    let sent = Arc::new(AtomicUsize::new(0));
    let mut blast = JoinSet::new();
    for number in 0..CONNECTIONS {
        blast.spawn(blast_with(service.user("mallory")?, number, Arc::clone(&sent), stop.clone()));
    }
    let beside = work(&service, seconds).await?;
    beside.print("beside one at full blast", pid)?;
    println!("ratio of 99 %: {:.1}", beside.percentile(99) / alone.percentile(99));
    for _ in 0..3 {
        work(&service, seconds).await?.print("... going on", pid)?;
    }
    stop.cancel();
    while let Some(ended) = blast.join_next().await {
        ended??;
    }
    println!("requests of the one, answered or refused: {}\n", sent.load(Ordering::Relaxed));
    Ok(())
}

/// How long requests took, in milliseconds.
struct Times(Vec<f64>);

/// Twenty users send requests as a browser and JupyterHub do: the form, and the state of a lab.
async fn work(service: &Service, seconds: u64) -> anyhow::Result<Times> {
    let mut users = JoinSet::new();
    for number in 0..USERS {
        let name = format!("user-{number}");
        let client = service.user(&name)?;
        users.spawn(async move {
            let until = Instant::now() + Duration::from_secs(seconds);
            let mut turn = interval(EVERY);
            turn.set_missed_tick_behavior(MissedTickBehavior::Skip);
            let mut times = Vec::new();
            while Instant::now() < until {
                turn.tick().await;
                let path = if times.len() % 2 == 0 { "spawn-form" } else { "labs" };
                let begun = Instant::now();
                let answer = client.get(&format!("{PREFIX}/{path}/{name}")).await?;
                times.push(begun.elapsed().as_secs_f64() * 1e3);
                anyhow::ensure!(matches!(answer.status, 200 | 404), "{answer:?}");
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(of_one) = users.join_next().await {
        times.extend(of_one??);
    }
    Ok(Times(times))
}

/// Sends one request after the other: forms, spawns, states, streams.
async fn blast_with(
    client: Client,
    number: usize,
    sent: Arc<AtomicUsize>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let mut at = number;
    while !stop.is_cancelled() {
        at += 1;
        match at % 4 {
            0 => drop(client.get(&format!("{PREFIX}/spawn-form/mallory")).await?),
            1 => drop(client.spawn(&format!("mallory/servers/s{at}")).await?),
            2 => drop(client.get(&format!("{PREFIX}/labs/mallory")).await?),
            _ => drop(client.events(&format!("mallory/servers/s{}", at - 2)).await),
        }
        sent.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

impl Times {
    fn percentile(&self, percent: usize) -> f64 {
        let mut times = self.0.clone();
        times.sort_by(f64::total_cmp);
        times.get(times.len() * percent / 100).copied().unwrap_or_default()
    }

    fn print(&self, of: &str, pid: u32) -> anyhow::Result<()> {
        let (half, most) = (self.percentile(50), self.percentile(99));
        let memory = Usage::from_process(pid)?.resident_kib / 1024;
        println!("{of:24} {:8} {half:8.2}  {most:8.2}   {memory} MiB", self.0.len());
        Ok(())
    }
}
