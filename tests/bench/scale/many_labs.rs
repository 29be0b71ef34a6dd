//! What many running labs cost the service.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use wasmspawner_tests::api::{Client, PREFIX};

use crate::rounds::{fraction, mebibytes};
use crate::simulated::{SimulatedCluster, Templates};
use crate::site;
use crate::usage::Usage;

/// The service's interval of reconciliation during the measurement, and how long it is measured.
const RECONCILE_EVERY: Duration = Duration::from_secs(2);
const RECONCILES: u32 = 4;

struct Row {
    labs: usize,
    /// Time to readiness since the start of the process, and since the last page of a list.
    start: Duration,
    after_lists: Duration,
    start_cpu: u64,
    settled: Usage,
    reconcile_cpu: u64,
    /// Time of one request of the Hub for the status of all labs.
    status: Duration,
    status_bytes: usize,
}

/// Starts the service with each number of labs, and prints the costs.
pub(crate) async fn measure(numbers: &[usize]) -> anyhow::Result<()> {
    let templates = Templates::of_a_lab().await?;
    println!("running labs on a simulated API server");
    println!(
        "  labs    start   after the lists   CPU of it    memory (at most)   a lab more   reconcile   all states"
    );
    let mut before: Option<Row> = None;
    for &labs in numbers {
        let row = Row::measured(templates.clone(), labs).await?;
        row.print(before.as_ref());
        before = Some(row);
    }
    println!();
    Ok(())
}

impl Row {
    async fn measured(templates: Templates, labs: usize) -> anyhow::Result<Self> {
        let cluster = SimulatedCluster::start(templates, labs).await?;
        let mut service = site::on_cluster(&cluster.kubeconfig(), "default", "wasmspawner", |config| {
            config["limits"]["reconcile_every"] = format!("{}s", RECONCILE_EVERY.as_secs()).into();
            // The copied lab is from the one-machine cluster.
            config.as_object_mut().map(|config| config.remove("names"));
        })?;
        let begun = Instant::now();
        service.run().await?;
        let (start, after_lists) = (begun.elapsed(), cluster.last_page().elapsed());
        let pid = service.pid().context("the service has no process")?;
        let start_cpu = Usage::from_process(pid)?.cpu_millis;
        let hub = service.hub()?;
        check_all_are_listed(&hub, labs).await.with_context(|| service.log())?;
        let asked = Instant::now();
        let answer = hub.get(&format!("{PREFIX}/lab-status")).await?;
        let status = asked.elapsed();
        anyhow::ensure!(answer.status == 200, "{answer:?}");
        let idle = Usage::from_process(pid)?;
        tokio::time::sleep(RECONCILE_EVERY * RECONCILES).await;
        let settled = Usage::from_process(pid)?;
        let reconcile_cpu = (settled.cpu_millis - idle.cpu_millis) / u64::from(RECONCILES);
        let status_bytes = answer.body.len();
        Ok(Self { labs, start, after_lists, start_cpu, settled, reconcile_cpu, status, status_bytes })
    }

    fn print(&self, before: Option<&Self>) {
        let more = before.filter(|before| before.labs < self.labs).map_or_else(String::new, |before| {
            let kib = self.settled.resident_kib.saturating_sub(before.settled.resident_kib);
            format!("{:.1} KiB", fraction(kib) / fraction((self.labs - before.labs) as u64))
        });
        println!(
            "{:6}  {:5.2} s   {:13.2} s   {:7.2} s   {:6.1} ({:6.1}) MiB   {more:>10}   {:6} ms   {:.0} ms, {} KiB",
            self.labs,
            self.start.as_secs_f64(),
            self.after_lists.as_secs_f64(),
            Duration::from_millis(self.start_cpu).as_secs_f64(),
            mebibytes(self.settled.resident_kib),
            mebibytes(self.settled.peak_kib),
            self.reconcile_cpu,
            self.status.as_secs_f64() * 1e3,
            self.status_bytes / 1024
        );
    }
}

/// Checks that the service knows all labs as running.
async fn check_all_are_listed(hub: &Client, labs: usize) -> anyhow::Result<()> {
    let running = hub.get(&format!("{PREFIX}/labs?status=running")).await?.json()?;
    let count = running.as_array().context("no list")?.len();
    anyhow::ensure!(count == labs, "{count} of {labs} labs are known to run");
    Ok(())
}
