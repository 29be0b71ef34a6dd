//! Random schedules: users start and stop labs, other clients interfere, the API server fails, and the service is
//! killed. When all faults are over, the service must answer for every lab as the pure core does for the same record
//! and pod. Then all labs are stopped; no object may be left and no operation may be under way.
//!
//! `SOAK_SEED` repeats a schedule, `SOAK_RUNS` sets the number of schedules. Without either, as many run as fit into a
//! minute, at most 50.

mod pair;
mod pure_core;
mod run;
mod schedule;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::setup::Setup;
use schedule::Schedule;

/// Default number of schedules in a test run.
const RUNS: u64 = 50;
/// Time after which no further schedule begins, by default.
const TIME: Duration = Duration::from_mins(1);
/// The number of schedules that run in parallel, each with its own cluster and service. Every second one has retained
/// namespaces, every fourth keeps those of labs for a moment.
const LANES: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn after_random_faults_the_cluster_holds_no_leftovers() {
    run_all(RUNS, LANES, async |lane, schedules: Schedules| {
        let mut setup = Setup::start(|config| {
            limits(config);
            match lane % 4 {
                0 => config["kubernetes"]["delete_namespaces_after"] = json!("0s"),
                2 => {}
                _ => {
                    config["kubernetes"]["namespaces"] = json!("retain");
                    config["kubernetes"]["delete_namespaces_after"] = Value::Null;
                }
            }
        })
        .await;
        let mut done = 0;
        while let Some(seed) = schedules.next() {
            let schedule = Schedule::from_seed(seed);
            println!("soak: lane {lane}: {schedule:?}");
            run::run(&mut setup, &schedule).await;
            done += 1;
        }
        done
    })
    .await;
}

/// The configuration of the service, besides its cluster.
fn limits(config: &mut Value) {
    let span = |limit: jiff::SignedDuration| format!("{limit:#}");
    config["limits"] = json!({
        "per_user": { "spawns_per_minute": 1_000_000 },
        "spawn": span(pure_core::LIMITS.spawn),
        "delete": span(pure_core::LIMITS.delete),
        "reconcile_every": "2s",
    });
    config["kubernetes"]["request_timeout"] = json!("2s");
}

/// The seeds of the schedules of a test run, which its lanes share.
#[derive(Clone)]
struct Schedules {
    first: u64,
    runs: u64,
    begun: Arc<AtomicU64>,
    /// The time after which no further schedule begins.
    until: Option<Instant>,
}

impl Schedules {
    /// Returns the seed of the next schedule, or `None` after the last one.
    fn next(&self) -> Option<u64> {
        if self.until.is_some_and(|until| Instant::now() >= until) {
            return None;
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst);
        (number < self.runs).then_some(self.first + number)
    }
}

/// Runs schedules in several lanes: as many as `SOAK_RUNS` says, or at most `runs` within [`TIME`]. A lane returns how many
/// it has run.
async fn run_all(runs: u64, lanes: usize, lane: impl AsyncFn(usize, Schedules) -> u64) {
    let asked = number("SOAK_RUNS");
    let first = number("SOAK_SEED").unwrap_or_else(|| {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap();
        since.as_secs() % 1_000_000 * 1000
    });
    let (runs, began) = (asked.unwrap_or(runs), Instant::now());
    println!("soak: at most {runs} schedules from SOAK_SEED={first}");
    let until = asked.is_none().then_some(began + TIME);
    let schedules = Schedules { first, runs, begun: Arc::default(), until };
    let lanes = (0..lanes.min(usize::try_from(runs).unwrap())).map(|number| lane(number, schedules.clone()));
    let done: u64 = futures::future::join_all(lanes).await.into_iter().sum();
    println!("soak: {done} schedules in {:?}", began.elapsed());
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}
