//! `wasmspawner jobs`

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::Value;
use wasmspawner_core::config::ConfigFile;
use wasmspawner_core::names::lab::JobId;
use wasmspawner_history::read_job;

use super::labs::{ConnectionArgs, print_json};
use super::plain::plain;

const EXAMPLES: &str = "\
Examples:
  wasmspawner jobs show 01a1fd9e-deb5-7652-a3d6-2d71fc436701 --state-dir DIR
  wasmspawner jobs show 01a1fd9e-deb5-7652-a3d6-2d71fc436701 --config wasmspawner.yaml   from NATS, without a service

The id of a lab's present operation is its `job_id` (`labs show USER --json`), a label of its pod
(`wasmspawner.io/job-id`), and the first part of the ids of its events.";

/// Shows operations on labs by their ids.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct JobsArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: JobsCommand,
}

#[derive(Debug, Subcommand)]
enum JobsCommand {
    /// Show one operation: its stages, its events, and what the cluster has reported
    Show(ShowArgs),
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// The id of the operation
    id: JobId,
    /// Read from the NATS of this configuration (`history.nats`) instead of asking a service
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Answer in JSON, as the service or NATS has it
    #[arg(long)]
    json: bool,
}

/// The fields that are shown, as the API and the entries in NATS have them. What a newer version adds is ignored.
#[derive(Debug, Deserialize)]
struct Job {
    #[serde(alias = "user")]
    username: String,
    server: String,
    kind: String,
    started_at: String,
    ended_at: Option<String>,
    outcome: Option<Value>,
    #[serde(default)]
    failure: Option<Failure>,
    stages: Vec<Stage>,
    events: Vec<Event>,
    cluster_events: Vec<Report>,
}

#[derive(Debug, Deserialize)]
struct Failure {
    reason: String,
    message: String,
}

#[derive(Debug, Deserialize)]
struct Stage {
    #[serde(rename = "stage")]
    name: String,
    entered_at: String,
    duration_ms: Option<i64>,
}

#[derive(Debug, Deserialize)]
struct Event {
    at: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    data: Value,
}

#[derive(Debug, Deserialize)]
struct Report {
    at: String,
    severity: String,
    reason: String,
    message: String,
    source: String,
}

impl JobsArgs {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        let JobsCommand::Show(ShowArgs { id, config, json }) = &self.command;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let job = runtime.block_on(async {
            match config {
                Some(file) => from_store(file, *id).await,
                None => self.connection.open()?.read(&["jobs", &id.to_string()]).await,
            }
        })?;
        if *json {
            return print_json(out, &job);
        }
        Ok(print_job(
            out,
            &serde_json::from_value(job).context("the operation is of another version; see --json")?,
        )?)
    }
}

async fn from_store(file: &PathBuf, id: JobId) -> anyhow::Result<Value> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let config: ConfigFile =
        serde_saphyr::from_str(&text).with_context(|| format!("{} cannot be used", file.display()))?;
    let nats = config.history.validate()?.with_context(|| {
        format!("{} has no history.nats; leave --config out, and ask the service", file.display())
    })?;
    let found = read_job(nats, id).await?;
    ensure!(
        found.is_some(),
        "NATS has no operation {id}; it keeps them for limits.history after their last event"
    );
    serde_json::from_slice(&found.unwrap_or_default()).context("the entry in NATS is no JSON")
}

fn print_job(out: &mut impl Write, job: &Job) -> std::io::Result<()> {
    let server = if job.server.is_empty() { String::new() } else { format!("/{}", job.server) };
    let lab = format!("{}{server}", job.username);
    writeln!(out, "{} of {}, began {}", plain(&job.kind), plain(&lab), second(&job.started_at))?;
    match (&job.outcome, job.failure()) {
        (None | Some(Value::Null), _) => writeln!(out, "under way")?,
        (_, Some(Failure { reason, message })) => {
            writeln!(out, "failed: {}: {}", plain(&reason), plain(&message))?;
        }
        (Some(outcome), None) => writeln!(out, "{}", plain(outcome.as_str().unwrap_or("ended")))?,
    }
    if let Some(ended_at) = &job.ended_at {
        writeln!(out, "ended {}", second(ended_at))?;
    }
    for Stage { name, entered_at, duration_ms } in &job.stages {
        let took = duration_ms.map_or_else(|| "now".to_owned(), |spent| format!("{spent} ms"));
        writeln!(out, "{}  stage {}, {took}", second(entered_at), plain(name))?;
    }
    for Event { at, kind, data } in job.events.iter().filter(|event| event.kind != "stage") {
        let text = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
        writeln!(out, "{}  {} {}", second(at), plain(kind), plain(&text))?;
    }
    for Report { at, severity, reason, message, source } in &job.cluster_events {
        let text = format!("{severity}: {source}: {reason}: {message}");
        writeln!(out, "{}  cluster {}", second(at), plain(&text))?;
    }
    Ok(())
}

impl Job {
    /// Why it failed: a field of its own in the API, and a part of the outcome in NATS.
    fn failure(&self) -> Option<Failure> {
        let of_outcome = || serde_json::from_value(self.outcome.as_ref()?.get("failed")?.clone()).ok();
        let known = self.failure.as_ref();
        known
            .map(|Failure { reason, message }| Failure { reason: reason.clone(), message: message.clone() })
            .or_else(of_outcome)
    }
}

/// The time of day in seconds, as the service writes times.
fn second(at: &str) -> String {
    plain(at.split('.').next().unwrap_or_default().trim_end_matches('Z')).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn printed(job: Value) -> String {
        let mut out = Vec::new();
        print_job(&mut out, &serde_json::from_value(job).unwrap()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_service_and_nats_are_shown_alike() {
        let common = json!({
            "job_id": "01a1fd9e-deb5-7652-a3d6-2d71fc436701", "server": "gpu", "kind": "spawn",
            "started_at": "2026-01-02T03:04:05.678Z", "ended_at": "2026-01-02T03:04:09Z",
            "stages": [
                { "stage": "Pulling", "reason": "Pulling", "entered_at": "2026-01-02T03:04:06Z", "duration_ms": 3000 },
                { "stage": "Failed", "reason": "ErrImagePull", "entered_at": "2026-01-02T03:04:09Z", "duration_ms": null },
            ],
            "events": [
                { "number": 1, "at": "2026-01-02T03:04:05Z", "type": "progress", "data": 5 },
                { "number": 2, "at": "2026-01-02T03:04:09Z", "type": "failed", "data": "no such \u{1b}[2Jimage" },
            ],
            "cluster_events": [{
                "at": "2026-01-02T03:04:07Z", "severity": "critical", "reason": "Failed", "message": "not found",
                "count": 1, "source": "pod",
            }],
        });
        let failure = json!({ "reason": "ErrImagePull", "message": "no image", "blame": "cluster" });
        let (mut of_service, mut of_nats) = (common.clone(), common);
        of_service["username"] = "ada".into();
        of_service["outcome"] = "failed".into();
        of_service["failure"] = failure.clone();
        of_nats["user"] = "ada".into();
        of_nats["outcome"] = json!({ "failed": failure });
        assert_eq!(printed(of_service.clone()), printed(of_nats));
        insta::assert_snapshot!(printed(of_service), @r"
        spawn of ada/gpu, began 2026-01-02T03:04:05
        failed: ErrImagePull: no image
        ended 2026-01-02T03:04:09
        2026-01-02T03:04:06  stage Pulling, 3000 ms
        2026-01-02T03:04:09  stage Failed, now
        2026-01-02T03:04:05  progress 5
        2026-01-02T03:04:09  failed no such \u{1b}[2Jimage
        2026-01-02T03:04:07  cluster critical: pod: Failed: not found
        ");
    }
}
