//! `wasmspawner policy diff`

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use wasmspawner_core::values::difference::differences;

use super::case::Case;
use super::case_files::case_files;
use super::hooks::{HookName, outcome};
use super::loaded::{PolicyFile, read};
use crate::cli::plain::plain;
use wasmspawner_policies::Patience;

const EXAMPLES: &str = "\
Examples:
  wasmspawner policy diff site-1.wasm site-2.wasm cases --config site.yaml
  wasmspawner policy diff site.wasm site.wasm cases --config site.yaml --candidate-config new.yaml
  curl -H \"Authorization: Bearer $TOKEN\" $SERVICE/spawner/v1/policies | jq '[.[].candidate.last[]?]' > asked.json
  wasmspawner policy diff site-1.wasm site-2.wasm asked.json --config site.yaml

CASES is a folder of cases as `policy test` has them, one such file, or a file with a list of {\"hook\": .., \"input\": ..}: GET
/policies has the last requests to which the candidate of a policy (`policies[].candidate`) gave another answer. With a
difference the exit code is 1.";

/// Arguments of `policy diff`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DiffArgs {
    #[command(flatten)]
    policy: PolicyFile,
    /// What may replace the policy: a WebAssembly component, or a folder with exactly one
    candidate: PathBuf,
    /// A folder of cases, or a file with one or several; `-` is standard input
    cases: PathBuf,
    /// The configuration of the candidate [default: that of the policy]
    #[arg(long, value_name = "FILE")]
    candidate_config: Option<PathBuf>,
}

/// A call: a case of `policy test`, or an entry of `GET /policies`, whose other keys are known and not read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedCase {
    hook: HookName,
    #[serde(default)]
    input: Case,
    #[serde(default, rename = "config")]
    _config: IgnoredAny,
    #[serde(default, rename = "expect")]
    _expect: IgnoredAny,
    #[serde(default, rename = "at")]
    _at: IgnoredAny,
    #[serde(default, rename = "places")]
    _places: IgnoredAny,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Asked {
    Several(Vec<Value>),
    One(Value),
}

impl DiffArgs {
    pub(super) async fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let config = self.policy.config()?;
        let config_of_candidate =
            self.candidate_config.as_deref().map(read).transpose()?.unwrap_or_else(|| config.clone());
        let candidate = PolicyFile { policy: self.candidate.clone(), config: None };
        let cases = cases(&self.cases)?;
        let (mut different, mut same) = (0_usize, 0_usize);
        // Both are loaded once for all cases with the same knowledge about images.
        let mut loaded = BTreeMap::new();
        for (name, case) in &cases {
            let images = &case.input.images;
            let (live, other) = match loaded.entry(images.clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert((
                    self.policy.load(config.clone(), images.inventory()?).await?,
                    candidate.load(config_of_candidate.clone(), images.inventory()?).await?,
                )),
            };
            let patience = Patience::default();
            let was = outcome(patience.ask(|| case.hook.ask(live, &case.input)).await);
            let is = outcome(patience.ask(|| case.hook.ask(other, &case.input)).await);
            let found = differences(&was, &is);
            if found.is_empty() {
                same += 1;
                continue;
            }
            different += 1;
            writeln!(out, "{name}: {}", json!(case.hook).as_str().unwrap_or_default())?;
            for difference in found {
                let text =
                    |value: Option<Value>| value.map_or_else(|| "nothing".to_owned(), |it| it.to_string());
                let (was, is) = (text(difference.expected), text(difference.found));
                writeln!(out, "    {}", plain(&format!("{}: {was} becomes {is}", difference.place)))?;
            }
        }
        writeln!(out, "{different} of {} answers differ", same + different)?;
        Ok(if different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Reads all cases, with the name of each.
fn cases(path: &Path) -> anyhow::Result<Vec<(String, AskedCase)>> {
    let files = if path == Path::new("-") { vec![path.to_owned()] } else { case_files(path)? };
    let mut cases = Vec::new();
    for file in files {
        let name = file.display().to_string();
        match read(&file)? {
            Asked::One(case) => cases.push((name, case)),
            Asked::Several(several) => {
                let numbered = several.into_iter().enumerate();
                cases.extend(numbered.map(|(at, case)| (format!("{name}, {}", at + 1), case)));
            }
        }
    }
    let parsed = cases.into_iter().map(|(name, case)| {
        let case = serde_json::from_value(case).with_context(|| name.clone())?;
        Ok((name, case))
    });
    parsed.collect()
}
