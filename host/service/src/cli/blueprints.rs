//! `wasmspawner blueprints`

use std::io::Write;

use clap::{Args, Subcommand};
use serde_json::Value;

use super::labs::{ConnectionArgs, Service, print_json};
use super::plain::plain;

const EXAMPLES: &str = "\
Examples:
  wasmspawner blueprints list --state-dir DIR       the site's blueprints
  wasmspawner blueprints show gpu                   one of them, as it was written
  wasmspawner blueprints resolve gpu --user ada     what it means for ada's lab, and what comes from where";

/// Shows the blueprints of a running service.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct BlueprintsArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: BlueprintsCommand,
}

#[derive(Debug, Subcommand)]
enum BlueprintsCommand {
    /// List the site's blueprints; with --user, those that a user may choose
    List(ListArgs),
    /// Show a blueprint as it was written
    Show(ShowArgs),
    /// Show what a blueprint of the site, or of the user, means for a user's lab: all that it extends, merged, and what comes from where
    Resolve(ResolveArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Only those that this user may choose
    #[arg(long)]
    user: Option<String>,
    /// Answer in JSON, as the service does
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// The blueprint's name
    name: String,
}

#[derive(Debug, Args)]
struct ResolveArgs {
    /// The blueprint's name
    name: String,
    /// The user whose lab it would be
    #[arg(long)]
    user: String,
    /// Answer in JSON, as the service does
    #[arg(long)]
    json: bool,
}

impl BlueprintsArgs {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        let service = self.connection.open()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            match self.command {
                BlueprintsCommand::List(args) => list(&service, &args, out).await,
                BlueprintsCommand::Show(args) => show(&service, &args, out).await,
                BlueprintsCommand::Resolve(args) => resolve(&service, &args, out).await,
            }
        })
    }
}

async fn list(service: &Service, args: &ListArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let answer = match &args.user {
        Some(user) => service.read(&["blueprints", user]).await?,
        None => service.read(&["blueprints"]).await?,
    };
    if args.json {
        return print_json(out, &answer);
    }
    let all = answer.as_array().map(Vec::as_slice).unwrap_or_default();
    if all.is_empty() {
        return Ok(writeln!(out, "there are no blueprints")?);
    }
    for one in all {
        let said = if args.user.is_some() { one } else { &one["spec"] };
        let description = said["description"].as_str().unwrap_or_default();
        let description = match one["problem"].as_str() {
            Some(problem) => format!("cannot be used: {problem}"),
            None => description.to_owned(),
        };
        let name = one["name"].as_str().unwrap_or_default();
        writeln!(out, "{}", format!("{:<24}{}", plain(name), plain(&description)).trim_end())?;
    }
    Ok(())
}

async fn show(service: &Service, args: &ShowArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let answer = service.read(&["blueprints"]).await?;
    let found = answer.as_array().into_iter().flatten().find(|one| one["name"] == *args.name);
    let found = found.ok_or_else(|| {
        anyhow::anyhow!("there is no blueprint {:?}; `wasmspawner blueprints list` shows all", args.name)
    })?;
    print_json(out, &found["spec"])
}

async fn resolve(service: &Service, args: &ResolveArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let answer = service.read(&["blueprints", &args.user, "resolved", &args.name]).await?;
    if args.json {
        return print_json(out, &answer);
    }
    let names = answer["consists_of"].as_array().into_iter().flatten().filter_map(Value::as_str);
    writeln!(out, "merged in this order: {}", plain(&names.collect::<Vec<_>>().join(", ")))?;
    for (field, trail) in answer["sources"].as_object().into_iter().flatten() {
        let value = plain(&value(&answer["spec"], field)).into_owned();
        writeln!(out, "{:<32}{value}  ({})", plain(field), plain(trail.as_str().unwrap_or_default()))?;
    }
    for overlap in answer["overlaps"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        writeln!(out, "they differ: {}", plain(overlap))?;
    }
    Ok(())
}

/// Returns the value of a field such as `env.SIZE`. An item of a list is found by its name.
fn value(spec: &Value, field: &str) -> String {
    let (part, name) = field.split_once('.').unwrap_or((field, ""));
    let found = match &spec[part] {
        Value::Array(items) => items.iter().find(|item| item["name"] == name).unwrap_or(&Value::Null),
        Value::Object(entries) => entries.get(name).unwrap_or(&Value::Null),
        other => other,
    };
    match found {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
