//! `wasmspawner labs logs`

use std::io::Write;

use clap::Args;
use serde::Deserialize;

use super::service::Service;
use super::{LabArgs, print_json};
use crate::cli::plain::plain;

/// Arguments of `labs logs`.
#[derive(Debug, Args)]
pub(super) struct LogsArgs {
    #[command(flatten)]
    lab: LabArgs,
    /// Show the run before the container's last restart
    #[arg(long)]
    previous: bool,
    /// The container or init container; without it, the lab's own
    #[arg(long, value_name = "NAME")]
    container: Option<String>,
    /// How many lines, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    tail: u16,
    /// Answer in JSON, as the service does
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Deserialize)]
struct Log {
    lines: Vec<String>,
    truncated: bool,
}

pub(super) async fn logs(service: &Service, args: &LogsArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let lab = args.lab.key()?;
    let mut query = vec![("tail", args.tail.to_string()), ("previous", args.previous.to_string())];
    query.extend(args.container.clone().map(|name| ("container", name)));
    let answer = service.logs(&lab, &query).await?;
    if args.json {
        return print_json(out, &answer);
    }
    let Log { lines, truncated } = serde_json::from_value(answer)?;
    if truncated {
        writeln!(out, "... (the log is longer than the service shows)")?;
    }
    for line in lines {
        writeln!(out, "{}", plain(&line))?;
    }
    Ok(())
}
