//! What it costs to load the policy `default`, to prepare it, to replace it, to compare it with a candidate, and to have
//! calls under way.
//!
//! `cargo bench -p wasmspawner-tests --bench policy_load`

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use wasmspawner_core::policy::{LabRequest, Subject, User};
use wasmspawner_core::users::quota::Usage;
use wasmspawner_policies::{Compiler, EngineOptions, Policies, PolicySpec};
use wasmspawner_tests::guests;

const LOADS: usize = 7;
const CALLS: usize = 5000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let site = site()?;
    Box::pin(loads(&site)).await?;
    candidates(&site).await?;
    slots().await
}

fn site() -> anyhow::Result<PolicySpec> {
    let config = serde_json::from_str(include_str!("../../plugins/default/example.json"))?;
    Ok(PolicySpec { config, ..PolicySpec::new("site", guests::component("policy-default")) })
}

fn uncached() -> EngineOptions {
    let program = env!("CARGO_BIN_EXE_wasmspawner-under-test").into();
    EngineOptions { compiler: Compiler { program, ..Compiler::default() }, ..EngineOptions::default() }
}

/// The times of a load, with and without what makes it fast or slow.
#[expect(clippy::print_stdout, reason = "a benchmark talks to its reader")]
async fn loads(site: &PolicySpec) -> anyhow::Result<()> {
    let folder = TempDir::new()?;
    // The cache has to be private, so it is a folder that the service makes.
    let cached = EngineOptions { cache: Some(folder.path().join("cache")), ..uncached() };
    let unprepared = EngineOptions { prepare: false, ..uncached() };
    let (mut plain, mut cold, mut warm, mut again) = (Times::new(), Times::new(), Times::new(), Times::new());
    for _ in 0..LOADS {
        plain.measure(Box::pin(Policies::load(vec![site.clone()], unprepared.clone()))).await?;
        cold.measure(Box::pin(Policies::load(vec![site.clone()], uncached()))).await?;
        let policies = Policies::load(vec![site.clone()], cached.clone()).await?;
        warm.measure(Box::pin(Policies::load(vec![site.clone()], cached.clone()))).await?;
        again.measure(Box::pin(policies.reload())).await?;
    }
    let (plain, cold, warm, again) = (plain.millis(), cold.millis(), warm.millis(), again.millis());
    println!("load, not prepared        {plain:8.1} ms   compiles the component once");
    println!("load, prepared            {cold:8.1} ms   {:.1} x: compiles it twice more", cold / plain);
    println!("prepare                   {:8.1} ms   the difference", cold - plain);
    println!("load from the cache       {warm:8.1} ms   {:.3} x of a load without", warm / cold);
    println!("reload from the cache     {again:8.1} ms   {:.3} x", again / cold);
    Ok(())
}

/// What a candidate adds to a call: for the caller, and until the answers have been compared.
#[expect(clippy::print_stdout, reason = "a benchmark talks to its reader")]
async fn candidates(site: &PolicySpec) -> anyhow::Result<()> {
    let compared = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&compared);
    let on_compared = move |_: &_, _, _: &'static str| {
        count.fetch_add(1, Ordering::Relaxed);
    };
    let options = EngineOptions { on_compared: Arc::new(on_compared), ..uncached() };
    let candidate = PolicySpec { name: "site (candidate)".into(), ..site.clone() };
    let with = PolicySpec { candidate: Some(Box::new(candidate)), ..site.clone() };
    let (alone, with) = (
        Policies::load(vec![site.clone()], options.clone()).await?,
        Policies::load(vec![with], options).await?,
    );
    let lab = LabRequest { user: User { name: "ada".into(), ..User::default() }, ..LabRequest::default() };
    let (user, subject) = (&lab.user, Subject::default());
    let (mut reference, mut answered, mut both) = (Times::new(), Times::new(), Times::new());
    for _ in 0..CALLS {
        reference.measure(alone.limits(user, Usage::default(), &subject)).await?;
        let (begun, before) = (Instant::now(), compared.load(Ordering::Relaxed));
        answered.measure(with.limits(user, Usage::default(), &subject)).await?;
        while compared.load(Ordering::Relaxed) == before {
            tokio::task::yield_now().await;
        }
        both.0.push(begun.elapsed());
    }
    let (reference, answered, both) = (reference.millis(), answered.millis(), both.millis());
    println!("quota.limits              {:8.1} us   without a candidate", reference * 1e3);
    println!(
        "  with a candidate        {:8.1} us   {:.2} x for the caller",
        answered * 1e3,
        answered / reference
    );
    println!("  and its answer          {:8.1} us   {:.2} x of computing time", both * 1e3, both / reference);
    Ok(())
}

/// The memory of calls that are under way, of a policy that waits.
#[expect(clippy::print_stdout, reason = "a benchmark talks to its reader")]
async fn slots() -> anyhow::Result<()> {
    let mut spec = PolicySpec::new("waits", guests::component("guest-hostile"));
    spec.config = json!({ "act": "sleep" });
    spec.limits.deadline_ms = 1000;
    let options = uncached();
    let slots = options.slots;
    let policies = Policies::load(vec![spec], options).await?;
    let request = LabRequest::default();
    let mut calls: Vec<_> = (0..slots).map(|_| Box::pin(policies.customize(&request))).collect();
    let before = resident_kib()?;
    // Each call is under way once it has been polled, and stays so for its deadline.
    for call in &mut calls {
        anyhow::ensure!(futures::poll!(call).is_pending(), "the policy does not wait");
    }
    let under_way = resident_kib()?;
    drop(calls);
    let after = resident_kib()?;
    println!(
        "a call under way          {:8} KiB  of {slots}",
        under_way.saturating_sub(before) / slots as usize
    );
    println!(
        "a slot without a call     {:8} KiB  kept for the next call",
        after.saturating_sub(before) / slots as usize
    );
    Ok(())
}

/// The memory of this process.
fn resident_kib() -> anyhow::Result<usize> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    Ok(resident.trim().trim_end_matches(" kB").parse()?)
}

/// Times of the same thing.
struct Times(Vec<Duration>);

impl Times {
    fn new() -> Self {
        Self(Vec::new())
    }

    async fn measure<T, E>(&mut self, what: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let begun = Instant::now();
        let done = what.await;
        self.0.push(begun.elapsed());
        done
    }

    /// The median, in milliseconds.
    fn millis(&mut self) -> f64 {
        self.0.sort_unstable();
        self.0[self.0.len() / 2].as_secs_f64() * 1e3
    }
}
