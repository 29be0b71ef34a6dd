//! What calls of one policy cost while another misbehaves: the 99th percentile beside each hostile act, as a ratio to that
//! of the same calls alone, measured in turns. The runtime has two threads, as a small service has; acts that
//! compute for long have threads of their own, of low priority, so that others wait for neither one nor many of them.
//!
//! `cargo bench -p wasmspawner-tests --bench policy_neighbours [calls]`

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use wasmspawner_core::policy::{LabRequest, Subject, User};
use wasmspawner_core::users::quota::Usage;
use wasmspawner_policies::{Compiler, EngineOptions, Policies, PolicySpec};
use wasmspawner_tests::guests;

/// The acts of the guest `hostile`, and how many tasks call it at the same time.
const ACTS: [(&str, usize); 12] = [
    ("sleep", 1),
    ("loop", 1),
    ("loop", 8),
    ("memory", 1),
    ("recurse", 1),
    ("panic", 1),
    ("abort", 1),
    ("huge", 1),
    ("many", 1),
    ("log-flood", 1),
    ("log-huge", 1),
    ("strange-errors", 1),
];

/// In so many turns, calls are measured alone and beside an act, because other programs of the machine are noise.
const ROUNDS: usize = 5;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    let calls = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(40_000);
    for (act, at_once) in ACTS {
        // The hostile policy has no `quota`, so it is asked only for pods, and the other one only for limits.
        let policies = Policies::load(vec![hostile(act), site()?], options()).await?;
        beside(&format!("{act} x {at_once}"), calls, &policies, at_once, misbehave).await?;
    }
    let policies = Policies::load(vec![hostile(""), site()?], options()).await?;
    beside("reloads", calls, &policies, 1, reload).await
}

fn site() -> anyhow::Result<PolicySpec> {
    let config = serde_json::from_str(include_str!("../../plugins/default/example.json"))?;
    Ok(PolicySpec { config, ..PolicySpec::new("site", guests::component("policy-default")) })
}

fn hostile(act: &str) -> PolicySpec {
    PolicySpec {
        config: json!({ "act": act }),
        ..PolicySpec::new("evil", guests::component("guest-hostile"))
    }
}

fn options() -> EngineOptions {
    let program = env!("CARGO_BIN_EXE_wasmspawner-under-test").into();
    let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/policy-neighbours-cache");
    let compiler = Compiler { program, ..Compiler::default() };
    EngineOptions { compiler, cache: Some(cache.into()), ..EngineOptions::default() }
}

async fn misbehave(policies: Policies) {
    // It fails, as it is meant to.
    let _ = policies.customize(&LabRequest::default()).await;
}

async fn reload(policies: Policies) {
    let _ = policies.reload().await;
}

/// Measures calls alone, and while other tasks do something again and again, in turns.
#[expect(clippy::print_stdout, reason = "a benchmark talks to its reader")]
async fn beside<F: Future<Output = ()> + Send + 'static>(
    name: &str,
    calls: usize,
    policies: &Policies,
    at_once: usize,
    act: fn(Policies) -> F,
) -> anyhow::Result<()> {
    let (mut alone, mut meanwhile, mut acts) = (Times::default(), Times::default(), 0);
    for _ in 0..ROUNDS {
        alone.measure(policies, calls / ROUNDS).await?;
        let over = Arc::new(AtomicBool::default());
        let tasks: Vec<_> = (0..at_once)
            .map(|_| {
                let (policies, over) = (policies.clone(), Arc::clone(&over));
                tokio::spawn(async move {
                    let mut times = 0;
                    while !over.load(Ordering::Relaxed) {
                        act(policies.clone()).await;
                        times += 1;
                    }
                    times
                })
            })
            .collect();
        meanwhile.measure(policies, calls / ROUNDS).await?;
        over.store(true, Ordering::Relaxed);
        for task in tasks {
            acts += task.await?;
        }
    }
    let (alone, meanwhile) = (alone.sorted(), meanwhile.sorted());
    let ratio = |percent| meanwhile.micros(percent) / alone.micros(percent);
    println!(
        "beside {name:18} median {:7.1} us ({:5.2} x)   p99 {:8.1} us ({:6.2} x of {:5.1} us alone)   {acts} acts",
        meanwhile.micros(50),
        ratio(50),
        meanwhile.micros(99),
        ratio(99),
        alone.micros(99),
    );
    Ok(())
}

/// The times of calls.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    /// Makes calls, each in a task of its own, as requests have: the wait for a thread is a part of the time.
    async fn measure(&mut self, policies: &Policies, calls: usize) -> anyhow::Result<()> {
        for _ in 0..calls {
            let (policies, begun) = (policies.clone(), Instant::now());
            let call = async move {
                let (user, subject) = (User { name: "ada".into(), ..User::default() }, Subject::default());
                policies.limits(&user, Usage::default(), &subject).await?;
                anyhow::Ok(begun.elapsed())
            };
            self.0.push(tokio::spawn(call).await??);
        }
        Ok(())
    }

    /// Shortest first.
    fn sorted(mut self) -> Self {
        self.0.sort_unstable();
        self
    }

    fn micros(&self, percent: usize) -> f64 {
        self.0[(self.0.len() - 1) * percent / 100].as_secs_f64() * 1e6
    }
}
