//! `wasmspawner policy test`

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use serde::Deserialize;
use serde_json::Value;
use wasmspawner_core::values::difference::{differences, without_empty};

use super::case::Case;
use super::case_files::case_files;
use super::hooks::{HookName, outcome};
use super::known_images::KnownImages;
use super::loaded::{PolicyFile, read};
use crate::cli::plain::plain;
use wasmspawner_policies::{Patience, Policies};

const EXAMPLES: &str = "\
Examples:
  wasmspawner policy test guests.wasm cases --config guests.yaml
  wasmspawner policy test guests.wasm cases --config guests.yaml --update

A case is a file *.yaml or *.json, of which only `hook` and `expect` must be there:
  hook: quota.limits
  config: {group: guests}             # in place of --config
  input: {user: {name: eve, groups: [guests]}}
  expect: {labs: 1}                   # the answer as `policy run` prints it; a refusal is {error: {kind: denied, ..}}

--update writes the answer in place of `expect` and what follows it in the file, so let `expect` be its last key. With a
difference the exit code is 1.";

/// Arguments of `policy test`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TestArgs {
    #[command(flatten)]
    policy: PolicyFile,
    /// A folder of cases, or one case
    cases: PathBuf,
    /// Write the answers into the cases
    #[arg(long)]
    update: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TestCase {
    hook: HookName,
    config: Option<Value>,
    #[serde(default)]
    input: Case,
    #[serde(default)]
    expect: Value,
}

impl TestArgs {
    pub(super) async fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let comparison = Comparison { policy: &self.policy, update: self.update, only_failures: false };
        let failed = comparison.run(&self.cases, out).await?;
        Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// The comparison of a policy's answers with those that its cases expect.
pub(super) struct Comparison<'a> {
    pub(super) policy: &'a PolicyFile,
    /// True if the answers are written into the cases.
    pub(super) update: bool,
    /// True if only the cases that fail are printed.
    pub(super) only_failures: bool,
}

impl Comparison<'_> {
    /// Prints the results of the cases, and returns the number of failures.
    pub(super) async fn run(&self, cases: &Path, out: &mut impl Write) -> anyhow::Result<usize> {
        let files = case_files(cases)?;
        let config = self.policy.config()?;
        let mut loaded = BTreeMap::new();
        let mut failed = 0_usize;
        for file in &files {
            let case: TestCase = read(file)?;
            let answer = self.answer(&case, &config, &mut loaded).await;
            let found = answer.with_context(|| file.display().to_string())?;
            let different = differences(&without_empty(case.expect), &found);
            let name = file.display();
            match (different.is_empty(), self.update) {
                (true, _) if self.only_failures => {}
                (true, _) => writeln!(out, "ok       {name}")?,
                (false, true) => {
                    write_expectation(file, &found)?;
                    writeln!(out, "updated  {name}")?;
                }
                (false, false) => {
                    failed += 1;
                    writeln!(out, "FAILED   {name}")?;
                    for line in &different {
                        writeln!(out, "    {}", plain(&line.to_string()))?;
                    }
                }
            }
        }
        writeln!(out, "{} cases, {failed} failed", files.len())?;
        Ok(failed)
    }

    /// Returns the answer to a case. `loaded` contains the policies of earlier cases, by their configuration and their
    /// knowledge about images.
    async fn answer(
        &self,
        case: &TestCase,
        config: &Value,
        loaded: &mut BTreeMap<(String, KnownImages), Policies>,
    ) -> anyhow::Result<Value> {
        let config = case.config.as_ref().unwrap_or(config);
        let images = &case.input.images;
        let policies = match loaded.entry((config.to_string(), images.clone())) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(self.policy.load(config.clone(), images.inventory()?).await?),
        };
        let answer = Patience::default().ask(|| case.hook.ask(policies, &case.input)).await;
        if let Ok(None) = answer {
            bail!(case.hook.missing(policies));
        }
        Ok(outcome(answer))
    }
}

/// Writes the answer in place of `expect` and everything after it.
fn write_expectation(file: &Path, found: &Value) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(file)?;
    let text = if file.extension().is_some_and(|extension| extension == "json") {
        let mut case: Value = serde_json::from_str(&text)?;
        case["expect"] = found.clone();
        serde_json::to_string_pretty(&case)? + "\n"
    } else {
        let kept: String =
            text.split_inclusive('\n').take_while(|line| !line.starts_with("expect:")).collect();
        let expectation = serde_saphyr::to_string(&serde_json::json!({ "expect": found }))?;
        format!("{}\n{}\n", kept.trim_end(), expectation.trim_end())
    };
    std::fs::write(file, text).with_context(|| format!("{} cannot be written", file.display()))
}
