//! `wasmspawner labs`: commands for the operator of a running service.

mod connection;
mod event;
mod follow;
mod forgotten;
mod lab;
mod logs;
mod narrator;
mod orphans;
mod refusal;
mod retained;
mod service;
mod table;
mod volumes;

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use anyhow::ensure;
use clap::{Args, Subcommand};
use serde_json::json;
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::names::spawn_key::SpawnKey;
use wasmspawner_core::names::{ServerName, Username};
use wasmspawner_core::policy::user_string::{SpawnString, UserString};

use super::assignment::{self, Assignment};
pub(super) use connection::ConnectionArgs;
use lab::Lab;
pub(super) use service::Service;
use table::Row;

const EXAMPLES: &str = "\
Examples:
  wasmspawner labs list --state-dir DIR            a service of the one-machine mode
  export WASMSPAWNER_URL=https://hub.example.org/spawner/v1 WASMSPAWNER_TOKEN=...
  wasmspawner labs list --status running
  wasmspawner labs spawn ada --option size=small --wait
  wasmspawner labs spawn ada~blueprint=gpu
  wasmspawner labs events ada
  wasmspawner labs show ada --json
  wasmspawner labs logs ada --previous
  wasmspawner labs stop ada --wait
  wasmspawner labs stop ada~kernel=6f1a            a kernel of the lab; ~dask-pool=NAME is a pool";

/// Shows, starts and stops the labs of a running service.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct LabsArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: LabsCommand,
}

#[derive(Debug, Subcommand)]
enum LabsCommand {
    /// List users with a lab, one line for each: the lab of the default server, or else the states of named servers
    List(ListArgs),
    /// Show one lab, kernel or pool
    Show(ShowArgs),
    /// Follow what happens to a lab, kernel or pool until the operation is over; the exit code is 1 when it failed
    Events(LabArgs),
    /// Start a lab
    Spawn(SpawnArgs),
    /// Stop a lab, kernel or pool
    Stop(StopArgs),
    /// Show the last lines that a lab has printed, without what is probably a credential
    Logs(logs::LogsArgs),
    /// Show the volume claims that a server keeps while it has no lab; with --release, delete them
    Volumes(volumes::VolumesArgs),
    /// List labs that JupyterHub does not know any more, and when each will be stopped
    Forgotten(forgotten::ForgottenArgs),
    /// List what stays on purpose when labs end, and why: namespaces, volume claims, targets of environments
    Retained(retained::RetainedArgs),
    /// Show objects that carry this service's labels but belong to no lab; with --delete, delete them
    Orphans(orphans::OrphansArgs),
}

#[derive(Debug, Args)]
struct LabArgs {
    /// The user whose lab it is, or a user string: `ada/gpu`, `ada~blueprint=gpu`; in it, `%7E` stands for `~` and `%25`
    /// for `%`. `show`, `events` and `stop` take a kernel or pool, too: `ada~kernel=6f1a`, `ada~dask-pool=tides`
    user: String,
    /// The name of the user's server; without it, the default server, or that of the user string
    #[arg(default_value = "", hide_default_value = true)]
    server: String,
}

const STATUSES: [&str; 4] = ["starting", "running", "terminating", "failed"];

#[derive(Debug, Args)]
struct ListArgs {
    /// Only users with a lab in this state; may be repeated
    #[arg(long, value_name = "STATUS", value_parser = ["starting", "running", "terminating", "failed", "all"], default_value = "all")]
    status: Vec<String>,
    /// Answer in JSON: a list with the lab of each user's default server, or with the name of a user who has none
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ShowArgs {
    #[command(flatten)]
    lab: LabArgs,
    /// Answer in JSON, as the service does
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct SpawnArgs {
    #[command(flatten)]
    lab: LabArgs,
    /// A choice in the spawn form; may be repeated
    #[arg(long = "option", value_name = "NAME=VALUE")]
    options: Vec<Assignment>,
    /// Follow until the lab runs; the exit code is 1 when it does not
    #[arg(long)]
    wait: bool,
}

#[derive(Debug, Args)]
struct StopArgs {
    #[command(flatten)]
    lab: LabArgs,
    /// Follow until the lab is gone; the exit code is 1 when it cannot be removed
    #[arg(long)]
    wait: bool,
}

impl LabsArgs {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let service = self.connection.open()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            match self.command {
                LabsCommand::List(args) => list(&service, &args, out).await,
                LabsCommand::Show(args) => show(&service, &args, out).await,
                LabsCommand::Events(lab) => follow::follow(&service, &lab.spawn_key()?, out).await,
                LabsCommand::Spawn(args) => spawn(&service, &args, out).await,
                LabsCommand::Stop(args) => stop(&service, &args, out).await,
                LabsCommand::Forgotten(args) => {
                    forgotten::forgotten(&service, &args, out).await.map(|()| ExitCode::SUCCESS)
                }
                LabsCommand::Retained(args) => {
                    retained::retained(&service, &args, out).await.map(|()| ExitCode::SUCCESS)
                }
                LabsCommand::Orphans(args) => {
                    orphans::orphans(&service, &args, out).await.map(|()| ExitCode::SUCCESS)
                }
                LabsCommand::Logs(args) => logs::logs(&service, &args, out).await.map(|()| ExitCode::SUCCESS),
                LabsCommand::Volumes(args) => {
                    volumes::volumes(&service, &args, out).await.map(|()| ExitCode::SUCCESS)
                }
            }
        })
    }
}

impl LabArgs {
    fn key(&self) -> anyhow::Result<LabKey> {
        Ok(self.user_string()?.lab())
    }

    fn user_string(&self) -> anyhow::Result<UserString> {
        self.with_server(UserString::parse(&self.user)?)
    }

    /// The lab, or the kernel or pool of a lab.
    fn spawn_key(&self) -> anyhow::Result<SpawnKey> {
        let SpawnString { lab, child } = SpawnString::parse(&self.user)?;
        Ok(SpawnString { lab: self.with_server(lab)?, child }.key())
    }

    fn with_server(&self, mut asked: UserString) -> anyhow::Result<UserString> {
        let server = ServerName::parse(&self.server)?;
        if !server.is_default() {
            ensure!(asked.server.is_none(), "`{asked}` names a server already; leave out `{server}`");
            asked.server = Some(server);
        }
        Ok(asked)
    }
}

async fn list(service: &Service, args: &ListArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let mut labs = Vec::new();
    for user in service.users(&args.status).await? {
        // A user whose only lab is a named server is in the list and has no lab of this name.
        labs.push((user.clone(), service.lab_if_any(&LabKey::default_server(user).into()).await?));
    }
    if args.json {
        let labs: Vec<_> =
            labs.into_iter().map(|(user, lab)| lab.unwrap_or_else(|| json!({ "username": user }))).collect();
        print_json(out, &labs)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Vec::new();
    let of_named = of_named_servers(service, labs.iter().any(|(_, lab)| lab.is_none())).await?;
    for (user, lab) in labs {
        let row = match lab {
            Some(lab) => Row::Lab(Box::new(Lab::parse(lab)?)),
            None => Row::NamedServers(of_named.get(&user).cloned().unwrap_or_default()),
        };
        rows.push((user, row));
    }
    table::list(out, &rows)?;
    Ok(ExitCode::SUCCESS)
}

/// The statuses of the labs of each user, if there are users who only have named servers: the list of labs has no names of
/// servers.
async fn of_named_servers(
    service: &Service,
    needed: bool,
) -> anyhow::Result<BTreeMap<Username, Vec<&'static str>>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for status in STATUSES.into_iter().filter(|_| needed) {
        for user in service.users(&[status.to_owned()]).await? {
            found.entry(user).or_default().push(status);
        }
    }
    Ok(found)
}

async fn show(service: &Service, args: &ShowArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let key = args.lab.spawn_key()?;
    let found = service.lab(&key).await?;
    match key.is_lab() {
        _ if args.json => print_json(out, &found)?,
        true => table::show(out, &Lab::parse(found)?)?,
        false => table::show_child(out, &key, &found)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn spawn(service: &Service, args: &SpawnArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let asked = args.lab.user_string()?;
    let lab = asked.lab();
    service.spawn(&asked, &assignment::submission(&args.options)?).await?;
    if args.wait {
        return follow::follow(service, &lab.into(), out).await;
    }
    writeln!(out, "the lab of {lab} is starting")?;
    Ok(ExitCode::SUCCESS)
}

async fn stop(service: &Service, args: &StopArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let key = args.lab.spawn_key()?;
    service.stop(&key).await?;
    if args.wait {
        return follow::follow(service, &key, out).await;
    }
    match &key.child {
        None => writeln!(out, "the lab of {key} is being stopped")?,
        Some(_) => writeln!(out, "{key} is being stopped")?,
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn print_json(out: &mut impl Write, value: &impl serde::Serialize) -> anyhow::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)?;
    Ok(())
}
