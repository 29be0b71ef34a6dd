//! `wasmspawner policy bench`

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::case::Case;
use super::hooks::HookName;
use super::loaded::{PolicyFile, read};
use crate::cli::labs::print_json;
use wasmspawner_policies::{CallError, Policies};

const FORMAT: &str = "\
Each hook is called in a fresh instance each time, one call after the other, conversion included. --json prints
  {\"quota.limits\": {\"median_us\": 17.1, \"p99_us\": 25.3, \"calls_per_second\": 55000}, ..}
Only a release build of this program tells how fast a policy is.";

/// Arguments of `policy bench`.
#[derive(Debug, Args)]
#[command(after_help = FORMAT)]
pub(super) struct BenchArgs {
    #[command(flatten)]
    policy: PolicyFile,
    /// What the hooks are asked, as for `policy run`
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// How often each hook is called
    #[arg(long, value_name = "NUMBER", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    calls: u32,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

/// The times of a hook.
#[derive(Debug, Serialize)]
struct Times {
    /// The time in microseconds.
    median_us: f64,
    /// The time in microseconds.
    p99_us: f64,
    calls_per_second: f64,
}

impl BenchArgs {
    pub(super) async fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let case: Case = self.input.as_deref().map(read).transpose()?.unwrap_or_default();
        let policies = self.policy.load(self.policy.config()?, case.images.inventory()?).await?;
        let mut measured = BTreeMap::new();
        for hook in HookName::value_variants() {
            if let Some(times) = self.measure(*hook, &policies, &case).await {
                let name = hook.to_possible_value().map(|value| value.get_name().to_owned());
                measured.insert(name.unwrap_or_default(), times);
            }
        }
        if self.json {
            print_json(out, &serde_json::to_value(&measured)?)?;
            return Ok(ExitCode::SUCCESS);
        }
        for (hook, Times { median_us, p99_us, calls_per_second }) in &measured {
            writeln!(
                out,
                "{hook:<22} median {median_us:>8.1} us  p99 {p99_us:>8.1} us  {calls_per_second:>9.0} calls/s"
            )?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Measures a hook. Returns `None` if the policy does not have it. A refusal is an answer, too.
    async fn measure(&self, hook: HookName, policies: &Policies, case: &Case) -> Option<Times> {
        let answered: Result<Option<_>, CallError> = hook.ask(policies, case).await;
        if let Ok(None) = answered {
            return None;
        }
        let begun = Instant::now();
        let mut times = Vec::new();
        for _ in 0..self.calls {
            let call = Instant::now();
            let _ = hook.ask(policies, case).await;
            times.push(call.elapsed());
        }
        let all = begun.elapsed();
        times.sort_unstable();
        let at = |percent: usize| times.get((times.len() - 1) * percent / 100).map_or(0.0, micros);
        let calls_per_second = f64::from(self.calls) / all.as_secs_f64();
        Some(Times { median_us: at(50), p99_us: at(99), calls_per_second })
    }
}

/// Returns the microseconds, rounded to a tenth.
fn micros(time: &Duration) -> f64 {
    (time.as_secs_f64() * 1e7).round() / 10.0
}
