//! `wasmspawner policy list`

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;

use crate::cli::columns;
use crate::cli::labs::{ConnectionArgs, print_json};
use crate::cli::plain::plain;

const EXAMPLES: &str = "\
Examples:
  wasmspawner policy list --state-dir DIR          the policies of a service of the one-machine mode
  wasmspawner policy list --url https://hub.example.org/spawner/v1 --json | jq -r '.[] | .name + \" \" + .digest'";

/// The number of characters of a digest that distinguish two policies.
const SHORT_DIGEST: usize = "sha256:".len() + 12;

/// Arguments of `policy list`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Answer in JSON, as the service does
    #[arg(long)]
    json: bool,
}

/// A policy of a running service.
#[derive(Debug, Deserialize)]
pub(super) struct ListedPolicy {
    pub(super) name: String,
    title: String,
    version: String,
    /// The source; empty in the answer of a service before this version.
    #[serde(default)]
    pub(super) source: String,
    pub(super) digest: String,
    hooks: Vec<String>,
    prepared: bool,
    not_prepared: Option<String>,
    last_error: Option<String>,
    pub(super) candidate: Option<ListedCandidate>,
}

/// The candidate that may replace a policy.
#[derive(Debug, Deserialize)]
pub(super) struct ListedCandidate {
    pub(super) digest: Option<String>,
    error: Option<String>,
    same: u64,
    different: u64,
}

impl ListArgs {
    pub(super) async fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let answer = self.connection.open()?.read(&["policies"]).await?;
        if self.json {
            print_json(out, &answer)?;
            return Ok(ExitCode::SUCCESS);
        }
        let policies: Vec<ListedPolicy> = serde_json::from_value(answer)?;
        if policies.is_empty() {
            writeln!(out, "the service has no policies")?;
            return Ok(ExitCode::SUCCESS);
        }
        let head = ["NAME", "TITLE", "VERSION", "STATE", "DIGEST", "HOOKS", "SOURCE"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        rows.extend(policies.iter().map(ListedPolicy::row));
        columns::print(out, &rows)?;
        for policy in &policies {
            for remark in policy.remarks() {
                writeln!(out, "{}: {}", plain(&policy.name), plain(&remark))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl ListedPolicy {
    fn row(&self) -> Vec<String> {
        let state = match (&self.last_error, self.prepared) {
            (Some(_), _) => "had an error",
            (None, true) => "prepared",
            (None, false) => "loaded",
        };
        let digest: String = self.digest.chars().take(SHORT_DIGEST).collect();
        let hooks = self.hooks.join(",");
        let cells = [&self.name, &self.title, &self.version, state, &digest, &hooks, &self.source];
        cells.map(|cell| plain(cell).into_owned()).to_vec()
    }

    /// Returns the remarks that do not fit in a row.
    fn remarks(&self) -> Vec<String> {
        let error = self.last_error.iter().map(|error| format!("the last error: {error}"));
        let slow = self.not_prepared.iter().map(|reason| format!("not prepared, so it is slower: {reason}"));
        let candidate = self.candidate.iter().map(ListedCandidate::remark);
        error.chain(slow).chain(candidate).collect()
    }
}

impl ListedCandidate {
    fn remark(&self) -> String {
        match (&self.error, &self.digest) {
            (Some(error), _) => format!("its candidate cannot be loaded: {error}"),
            (None, digest) => format!(
                "its candidate {}: {} answers the same, {} different",
                digest.as_deref().unwrap_or_default(),
                self.same,
                self.different
            ),
        }
    }
}
