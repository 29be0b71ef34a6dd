//! Calls of policies while the policies are replaced again and again. No call may fail, no answer may be a mixture of
//! two versions or that of a version that was replaced before the call began, and nothing of an old version may remain.
//!
//! `POLICY_CALLS` sets the number of calls. With it, the policies are replaced every second; without it, a few calls
//! are made while one replacement follows the other.
#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

mod process_memory;
mod question;
mod swapping;

use std::time::{Duration, Instant};

use process_memory::ProcessMemory;
use question::AnsweredQuestion;
use swapping::{Swapping, VERSIONS};

use wasmspawner_policies::{Compiler, EngineOptions, Policies, PolicySpec};
use wasmspawner_tests::guests;

/// Default number of calls.
const CALLS: u64 = 5_000;
/// The time between two replacements of the policies in a run of its own.
const PERIOD: Duration = Duration::from_secs(1);
/// The maximum growth in bytes of what is allocated after the warm-up calls.
const GROWTH: usize = 64 << 10;

/// The two policies of a version. Their answers to one question must be of the same version, too.
fn chain(version: usize) -> Vec<PolicySpec> {
    let component = guests::component("policy-default");
    ["base", "site"]
        .map(|name| PolicySpec { config: config(version), ..PolicySpec::new(name, &component) })
        .into()
}

/// The configuration of a version. The answer of every hook identifies the version.
fn config(version: usize) -> serde_json::Value {
    let example = include_str!("../../../plugins/default/example.json");
    let mut config: serde_json::Value = serde_json::from_str(example).unwrap();
    config["sizes"][0]["label"] = format!("Small, version {version}").into();
    config["default_size"] = ["small", "medium"][version].into();
    config["env"]["DOCS_URL"] = format!("https://docs.example.org/{version}").into();
    config["quota"]["default"]["pods"] = (version + 10).into();
    config["quota"]["groups"]["science"]["pods"] = (version + 20).into();
    config["authorize"]["message"] = format!("Ask support, version {version}.").into();
    config
}

fn options() -> EngineOptions {
    let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/policy-soak-cache");
    let program = env!("CARGO_BIN_EXE_wasmspawner-under-test").into();
    EngineOptions {
        cache: Some(cache.into()),
        compiler: Compiler { program, ..Compiler::default() },
        ..EngineOptions::default()
    }
}

#[test]
fn policies_are_replaced_under_calls() {
    let asked: Option<u64> = std::env::var("POLICY_CALLS").ok().map(|text| text.parse().unwrap());
    let calls = asked.unwrap_or(CALLS);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let questions = AnsweredQuestion::all([load(0).await, load(1).await]).await;
        let policies = load(0).await;
        let swapping = Swapping::new(policies, questions, asked.map(|_| PERIOD));

        swapping.run(CALLS.max(calls / 10)).await;
        let before = ProcessMemory::now();
        let begun = Instant::now();
        let counts = swapping.run(calls).await;
        let (after, took) = (ProcessMemory::now(), begun.elapsed());

        println!(
            "{calls} calls in {took:.1?} while the policies were replaced {} times; {:?} answers of each version",
            counts.replacements, counts.answers
        );
        println!("memory: {before} before, {after} after");
        assert_eq!(counts.answers.iter().sum::<u64>(), calls);
        assert!(counts.replacements > 0, "they were replaced {} times", counts.replacements);
        assert!(counts.answers.iter().all(|answers| *answers > 0), "{:?}", counts.answers);
        assert_eq!(after.machine_code, before.machine_code, "machine code of old versions remains");
        assert!(after.heap <= before.heap + GROWTH, "memory has grown from {before} to {after}");
    });
}

async fn load(version: usize) -> Policies {
    assert!(version < VERSIONS);
    Policies::load(chain(version), options()).await.unwrap()
}
