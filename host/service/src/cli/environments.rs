//! `wasmspawner environments`

use std::io::Write;

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::Value;

use super::columns;
use super::labs::{ConnectionArgs, Service, print_json};
use super::plain::plain;

const EXAMPLES: &str = "\
Examples:
  wasmspawner environments list --state-dir DIR      targets, claims and environments
  wasmspawner environments show gpu-1                one of them, with what is wrong
  wasmspawner environments release lab-ada-07ef60ab  let everybody have what was kept for its owner
  wasmspawner environments retire gpu-1              remove a target that no claim has, with its namespace";

/// Shows the environments of a running service, and frees or removes targets.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct EnvironmentsArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: EnvironmentsCommand,
}

#[derive(Debug, Subcommand)]
enum EnvironmentsCommand {
    /// List environments, claims and targets
    List(ListArgs),
    /// Show all that has this name: an environment, a claim, a target
    Show(NameArgs),
    /// Let any claim have a target that was released and is kept for its last owner, with what is in its namespace
    Release(TargetArgs),
    /// Remove a target that no claim has; a namespace that was made for it goes with everything in it
    Retire(TargetArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Answer in JSON, as the service does
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct NameArgs {
    /// The name
    name: String,
    /// Answer in JSON, as the service does
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct TargetArgs {
    /// The target's name
    target: String,
}

/// The answer of the service. Fields that are null are not printed.
#[derive(Debug, Deserialize)]
struct Known {
    environments: Vec<Value>,
    claims: Vec<Value>,
    targets: Vec<Value>,
}

impl EnvironmentsArgs {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        let service = self.connection.open()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            match self.command {
                EnvironmentsCommand::List(args) => list(&service, &args, out).await,
                EnvironmentsCommand::Show(args) => show(&service, &args, out).await,
                EnvironmentsCommand::Release(TargetArgs { target }) => {
                    service.release_target(&target).await?;
                    Ok(writeln!(out, "the target {} is free for any claim of its class", plain(&target))?)
                }
                EnvironmentsCommand::Retire(TargetArgs { target }) => {
                    service.retire_target(&target).await?;
                    Ok(writeln!(out, "the target {} is being removed", plain(&target))?)
                }
            }
        })
    }
}

async fn list(service: &Service, args: &ListArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let answer = service.environments().await?;
    if args.json {
        return print_json(out, &answer);
    }
    let Known { environments, claims, targets } = serde_json::from_value(answer)?;
    table(
        out,
        "ENVIRONMENT",
        &environments,
        &[("CLAIM", "claim"), ("PHASE", "phase"), ("DISPLAY NAME", "display_name")],
    )?;
    table(
        out,
        "CLAIM",
        &claims,
        &[("CLASS", "class"), ("TARGET", "target"), ("OWNER", "owner"), ("PHASE", "phase")],
    )?;
    let columns = [
        ("CLASS", "class"),
        ("NAMESPACE", "namespace"),
        ("CLUSTER", "cluster"),
        ("CLAIM", "claim"),
        ("OWNER", "owner"),
        ("PHASE", "phase"),
    ];
    table(out, "TARGET", &targets, &columns)?;
    let wrong = environments
        .iter()
        .chain(&claims)
        .chain(&targets)
        .filter_map(|one| Some((one["name"].as_str()?, one["problem"].as_str()?)));
    for (name, problem) in wrong {
        writeln!(out, "{}: {}", plain(name), plain(problem))?;
    }
    Ok(())
}

async fn show(service: &Service, args: &NameArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let Known { environments, claims, targets } = serde_json::from_value(service.environments().await?)?;
    let kinds = [("environment", environments), ("claim", claims), ("target", targets)];
    let named = kinds.into_iter().flat_map(|(kind, all)| all.into_iter().map(move |one| (kind, one)));
    let found: Vec<_> = named.filter(|(_, one)| one["name"] == *args.name).collect();
    if found.is_empty() {
        anyhow::bail!(
            "there is no environment, claim or target {:?}; `wasmspawner environments list` shows all",
            args.name
        );
    }
    if args.json {
        let all: serde_json::Map<String, Value> =
            found.into_iter().map(|(kind, one)| (kind.to_owned(), one)).collect();
        return print_json(out, &all);
    }
    for (kind, one) in found {
        writeln!(out, "{kind} {}", plain(&args.name))?;
        for (key, value) in
            one.as_object().into_iter().flatten().filter(|(key, value)| *key != "name" && !value.is_null())
        {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            writeln!(out, "  {:<14}{}", format!("{}:", key.replace('_', " ")), plain(&text))?;
        }
    }
    Ok(())
}

/// Prints a table with a column for the name and these others. Prints nothing if there are no rows.
fn table(out: &mut impl Write, first: &str, rows: &[Value], columns: &[(&str, &str)]) -> anyhow::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let cell = |row: &Value, key: &str| {
        row[key].as_str().map_or_else(|| "-".to_owned(), |text| plain(text).into_owned())
    };
    let all: Vec<(&str, &str)> = std::iter::once((first, "name")).chain(columns.iter().copied()).collect();
    let head = all.iter().map(|(title, _)| (*title).to_owned()).collect();
    let body = rows.iter().map(|row| all.iter().map(|(_, key)| cell(row, key)).collect());
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(body).collect();
    columns::print(out, &lines)?;
    Ok(writeln!(out)?)
}
