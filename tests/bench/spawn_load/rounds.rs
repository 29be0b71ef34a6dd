//! Floor and spawns in turn, and what they cost.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use wasmspawner_tests::guests;
use wasmspawner_tests::service::Service;

use crate::floor::Floor;
use crate::usage::Usage;
use crate::{service, spawns};

const ROUNDS: usize = 5;

/// The user whose lab's objects the floor copies.
const MODEL: &str = "modeluser";

/// Rounds of one kind.
struct Column {
    walls: Vec<Duration>,
    /// CPU time of the process that holds service and cluster, in milliseconds.
    service_cpu: u64,
    /// The same of this process, the client.
    client_cpu: u64,
    spawned: usize,
}

/// Alternates between floor and spawns, and prints what they took.
pub(crate) async fn measure(labs: usize) -> anyhow::Result<()> {
    let service = service(site()).await?;
    let pid = service.pid().context("the service has no process")?;
    let admin = service.admin()?;
    spawns::start(admin.clone(), MODEL.to_owned()).await?;
    let floor = Floor::like(service.cluster().await?, MODEL).await?;
    spawns::stop(admin.clone(), MODEL.to_owned()).await?;
    spawns::gone(&admin).await?;
    let idle = Usage::of(pid)?;

    let (mut bare, mut spawned) = (Column::new(), Column::new());
    let mut requests = BTreeMap::new();
    // The first of each opens connections and warms up; it does not count.
    for round in 0..=ROUNDS {
        let wall = bare.watch(pid, round, labs, floor.run(labs)).await?;
        floor.clear().await?;
        let before = kubernetes_requests(&service).await?;
        let took = spawned.watch(pid, round, labs, spawns::run(&admin, labs)).await?;
        if round > 0 {
            for (verb, count) in kubernetes_requests(&service).await? {
                *requests.entry(verb.clone()).or_insert(0) += count - before.get(&verb).copied().unwrap_or(0);
            }
        }
        spawns::clear(&admin, labs).await?;
        println!("  round {round}: floor {:.2} s, spawns {:.2} s", wall.as_secs_f64(), took.as_secs_f64());
    }
    let busy = Usage::of(pid)?;

    println!("{labs} labs at once, {ROUNDS} rounds; wall in seconds, CPU in milliseconds a lab");
    println!("          min  median    max   CPU of service and cluster   CPU of the client");
    bare.print("floor");
    spawned.print("spawns");
    println!("ratio of the medians {:.2}", spawned.median() / bare.median());
    let each = |count: &u64| ratio(*count, spawned.spawned as u64);
    let by_verb: Vec<String> =
        requests.iter().map(|(verb, count)| format!("{verb} {:.2}", each(count))).collect();
    println!(
        "Kubernetes requests a spawn {:.2} ({})",
        each(&requests.values().sum::<u64>()),
        by_verb.join(", ")
    );
    println!(
        "memory of service and cluster: {} MiB before, {} MiB after, {} MiB at most\n",
        idle.resident_kib / 1024,
        busy.resident_kib / 1024,
        busy.peak_kib / 1024
    );
    Ok(())
}

impl Column {
    fn new() -> Self {
        Self { walls: Vec::new(), service_cpu: 0, client_cpu: 0, spawned: 0 }
    }

    async fn watch(
        &mut self,
        pid: u32,
        round: usize,
        labs: usize,
        run: impl Future<Output = anyhow::Result<Duration>>,
    ) -> anyhow::Result<Duration> {
        let (service, client) = (Usage::of(pid)?, Usage::of_this()?);
        let wall = run.await?;
        if round > 0 {
            self.service_cpu += Usage::of(pid)?.cpu_millis - service.cpu_millis;
            self.client_cpu += Usage::of_this()?.cpu_millis - client.cpu_millis;
            self.spawned += labs;
            self.walls.push(wall);
        }
        Ok(wall)
    }

    fn median(&self) -> f64 {
        let mut walls = self.walls.clone();
        walls.sort_unstable();
        walls[walls.len() / 2].as_secs_f64()
    }

    fn print(&self, name: &str) {
        let seconds = |wall: Option<&Duration>| wall.map_or(0.0, Duration::as_secs_f64);
        println!(
            "{name:8} {:5.2}  {:6.2}  {:5.2}   {:26.2}   {:17.2}",
            seconds(self.walls.iter().min()),
            self.median(),
            seconds(self.walls.iter().max()),
            ratio(self.service_cpu, self.spawned as u64),
            ratio(self.client_cpu, self.spawned as u64),
        );
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn ratio(sum: u64, count: u64) -> f64 {
    sum as f64 / count as f64
}

/// The policy of the repository, with what an ordinary site has.
fn site() -> Value {
    json!({
        "name": "site",
        "path": guests::component("policy-default"),
        "config": {
            "images": [{ "name": "minimal", "reference": "lab:1" }, { "name": "scipy", "reference": "lab:2" }],
            "sizes": [{ "name": "small", "cpu": 1, "memory": "2Gi" }, { "name": "large", "cpu": 4, "memory": "8Gi" }],
            "env": { "DOCS_URL": "https://docs.example.org" },
            "volumes": [{ "name": "home", "nfs": { "server": "nfs.example.org", "path": "/export/home" } }],
            "mounts": [{ "volume": "home", "path": "/home/jovyan", "sub_path": "{username}" }],
        },
    })
}

/// What the service has asked the cluster so far, by verb.
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
