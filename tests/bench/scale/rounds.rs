//! Rounds of a bare client and of the service in turn, in the same cluster, and their costs.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use wasmspawner_tests::api::Client;
use wasmspawner_tests::service::Service;

use crate::bare_client::BareClient;
use crate::cluster::RealCluster;
use crate::usage::Usage;
use crate::{site, spawns};

const ROUNDS: usize = 3;

/// The user whose lab's objects the bare client copies.
const MODEL: &str = "modeluser";

/// Results of one of the two.
#[derive(Default)]
struct Column {
    starts: Vec<Duration>,
    stops: Vec<Duration>,
    /// CPU time of the service's process, in milliseconds per lab.
    start_cpu: f64,
    stop_cpu: f64,
}

/// Alternates between the bare client and the service, and prints their times.
pub(crate) async fn measure(labs: usize) -> anyhow::Result<()> {
    let real = RealCluster::enter().await?;
    let namespace = &real.cluster.namespace;
    let mut service = site::on_cluster(&real.kubeconfig()?, namespace, namespace, |_| {})?;
    service.run().await?;
    let pid = service.pid().context("the service has no process")?;
    let admin = service.admin()?;
    spawns::start(admin.clone(), MODEL.to_owned()).await?;
    let bare_client = BareClient::like(real.cluster.client.clone(), MODEL).await?;
    spawns::stop(admin.clone(), MODEL.to_owned()).await?;
    spawns::gone(&admin).await?;

    let (mut bare, mut ours) = (Column::default(), Column::default());
    let (mut requests, mut resident) = (BTreeMap::new(), 0);
    // The first round of each opens connections and warms up; it is not counted.
    for round in 0..=ROUNDS {
        let (start, stop) = (bare_client.run(labs).await?, bare_client.stop().await?);
        if round > 0 {
            bare.starts.push(start);
            bare.stops.push(stop);
        }
        let before = kubernetes_requests(&service).await?;
        let took = ours.round(pid, &admin, labs, round > 0, &mut resident).await?;
        real.cleaned_up().await?;
        if round > 0 {
            for (verb, count) in kubernetes_requests(&service).await? {
                *requests.entry(verb.clone()).or_insert(0) += count - before.get(&verb).copied().unwrap_or(0);
            }
        }
        println!(
            "  round {round}: bare client {:.2} and {:.2} s, service {:.2} and {:.2} s",
            start.as_secs_f64(),
            stop.as_secs_f64(),
            took.0.as_secs_f64(),
            took.1.as_secs_f64()
        );
    }
    let idle = Usage::from_process(pid)?;
    println!("{labs} labs at once on the real control plane, medians of {ROUNDS} rounds");
    println!("             start     stop");
    println!("bare client  {:5.2} s   {:5.2} s", median(&bare.starts), median(&bare.stops));
    println!("service      {:5.2} s   {:5.2} s", median(&ours.starts), median(&ours.stops));
    println!(
        "ratio        {:5.2}x   {:5.2}x",
        median(&ours.starts) / median(&bare.starts),
        median(&ours.stops) / median(&bare.stops)
    );
    let each = |sum: f64| sum / fraction((labs * ROUNDS) as u64);
    println!(
        "CPU of the service {:.2} ms a start, {:.2} ms a stop",
        each(ours.start_cpu),
        each(ours.stop_cpu)
    );
    let by_verb: Vec<String> =
        requests.iter().map(|(verb, count)| format!("{verb} {:.2}", each(fraction(*count)))).collect();
    let sum: u64 = requests.values().sum();
    println!(
        "Kubernetes requests per lab, start and stop: {:.2} ({})",
        each(fraction(sum)),
        by_verb.join(", ")
    );
    println!(
        "memory of the service: {:.1} MiB with {labs} labs, {:.1} MiB when they are gone, {:.1} MiB at most\n",
        mebibytes(resident),
        mebibytes(idle.resident_kib),
        mebibytes(idle.peak_kib)
    );
    drop(service);
    real.leave().await
}

/// Measures the service with one namespace per lab, and with one namespace for all labs.
pub(crate) async fn shared_namespace(labs: usize) -> anyhow::Result<()> {
    let real = RealCluster::enter().await?;
    println!("{labs} labs at once on the real control plane, medians of {ROUNDS} rounds");
    println!("                      start     stop   CPU of the service a start");
    let mut first = None;
    for (name, shared) in [("a namespace each", false), ("one namespace", true)] {
        let namespace = &real.cluster.namespace;
        let instance = format!("{namespace}-{shared}");
        let mut service = site::on_cluster(&real.kubeconfig()?, namespace, &instance, |config| {
            if shared {
                config["kubernetes"]["namespaces"] = "retain".into();
                config["names"]["namespace"] = format!("{namespace}-labs").into();
            }
        })?;
        service.run().await?;
        let pid = service.pid().context("the service has no process")?;
        let admin = service.admin()?;
        let (mut column, mut resident) = (Column::default(), 0);
        for round in 0..=ROUNDS {
            column.round(pid, &admin, labs, round > 0, &mut resident).await?;
            real.cleaned_up().await?;
        }
        let start = median(&column.starts);
        println!(
            "{name:18} {start:7.2} s {:7.2} s   {:.2} ms   ({:.2}x)",
            median(&column.stops),
            column.start_cpu / fraction((labs * ROUNDS) as u64),
            start / *first.get_or_insert(start)
        );
    }
    println!();
    real.leave().await
}

impl Column {
    /// Starts and stops all labs once.
    async fn round(
        &mut self,
        pid: u32,
        admin: &Client,
        labs: usize,
        counts: bool,
        resident_kib: &mut u64,
    ) -> anyhow::Result<(Duration, Duration)> {
        let before = Usage::from_process(pid)?;
        let start = spawns::run(admin, labs).await?;
        let running = Usage::from_process(pid)?;
        let stop = spawns::stop_all(admin, labs).await?;
        let after = Usage::from_process(pid)?;
        *resident_kib = running.resident_kib;
        if counts {
            self.starts.push(start);
            self.stops.push(stop);
            self.start_cpu += fraction(running.cpu_millis - before.cpu_millis);
            self.stop_cpu += fraction(after.cpu_millis - running.cpu_millis);
        }
        Ok((start, stop))
    }
}

pub(crate) fn median(walls: &[Duration]) -> f64 {
    let mut walls = walls.to_vec();
    walls.sort_unstable();
    walls[walls.len() / 2].as_secs_f64()
}

pub(crate) fn mebibytes(kib: u64) -> f64 {
    fraction(kib) / 1024.0
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
pub(crate) fn fraction(count: u64) -> f64 {
    count as f64
}

/// The number of the service's requests to the cluster so far, by verb.
async fn kubernetes_requests(service: &Service) -> anyhow::Result<BTreeMap<String, u64>> {
    let metrics = service.probes().get("/metrics").await?.body;
    let mut counts = BTreeMap::new();
    for line in metrics.lines() {
        let Some(labels) = line.strip_prefix(r#"wasmspawner_kubernetes_requests_total{verb=""#) else {
            continue;
        };
        let (verb, _) = labels.split_once('"').context("a label without an end")?;
        let (_, count) = labels.rsplit_once(' ').context("a counter without a number")?;
        *counts.entry(verb.to_owned()).or_insert(0) += count.parse::<u64>()?;
    }
    Ok(counts)
}
