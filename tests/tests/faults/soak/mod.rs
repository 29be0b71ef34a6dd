//! Random schedules: users start and stop labs, other clients interfere, the API server fails, and the service is
//! killed. When all faults are over, the service must answer for every lab as the pure core does for the same record
//! and pod. Then all labs are stopped; no object may be left and no operation may be under way.
//!
//! `SOAK_SEED` repeats a schedule, `SOAK_RUNS` sets the number of schedules. Without either, as many run as fit into a
//! minute, at most 50.

mod pure_core;
mod run;
mod schedule;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::setup::Setup;
use schedule::Schedule;

/// Default number of schedules in a test run.
const RUNS: u64 = 50;
/// Time after which no further schedule begins, by default.
const TIME: Duration = Duration::from_mins(1);
/// The number of schedules that run in parallel, each with its own cluster and service. Every second one has retained
/// namespaces.
const LANES: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn after_random_faults_the_cluster_holds_no_leftovers() {
    let asked = number("SOAK_RUNS");
    let first = number("SOAK_SEED").unwrap_or_else(|| {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap();
        since.as_secs() % 1_000_000 * 1000
    });
    let runs = asked.unwrap_or(RUNS);
    println!("soak: at most {runs} schedules from SOAK_SEED={first}");
    let (next, began) = (Arc::new(AtomicU64::new(0)), Instant::now());
    let lanes = (0..LANES.min(usize::try_from(runs).unwrap())).map(|lane| {
        let next = Arc::clone(&next);
        async move {
            let mut setup = Setup::start(|config| {
                let span = |limit: jiff::SignedDuration| format!("{limit:#}");
                config["limits"] = json!({
                    "per_user": { "spawns_per_minute": 1_000_000 },
                    "spawn": span(pure_core::LIMITS.spawn),
                    "delete": span(pure_core::LIMITS.delete),
                    "reconcile_every": "2s",
                });
                config["kubernetes"]["request_timeout"] = json!("2s");
                config["kubernetes"]["namespaces"] = json!(if lane % 2 == 0 { "delete" } else { "retain" });
            })
            .await;
            let mut done = 0;
            while asked.is_some() || began.elapsed() < TIME {
                let number = next.fetch_add(1, Ordering::SeqCst);
                if number >= runs {
                    break;
                }
                let schedule = Schedule::from_seed(first + number);
                println!("soak: lane {lane}: {schedule:?}");
                run::run(&mut setup, &schedule).await;
                done += 1;
            }
            done
        }
    });
    let mut done = 0;
    for lane in futures::future::join_all(lanes).await {
        done += lane;
    }
    println!("soak: {done} schedules in {:?}", began.elapsed());
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}
