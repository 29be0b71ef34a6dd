//! `wasmspawner debug`: the contents of a bug report.

mod bundle;
mod redaction;
mod sources;

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::labs::ConnectionArgs;

/// Collects what a bug report needs.
#[derive(Debug, Args)]
pub(super) struct DebugArgs {
    #[command(subcommand)]
    command: DebugCommand,
}

#[derive(Debug, Subcommand)]
enum DebugCommand {
    /// Write a tar file with the state of a running service, without credentials and without what users typed
    Bundle(BundleArgs),
}

#[derive(Debug, Args)]
struct BundleArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    /// The service's configuration, to be included without its secrets; it also says where health and metrics are
    #[arg(long, short, value_name = "FILE", env = "WASMSPAWNER_CONFIG")]
    config: Option<PathBuf>,
    /// URL of the service's health and metrics [default: as the configuration says]
    #[arg(long, value_name = "URL")]
    health_url: Option<String>,
    /// A file with the service's log, of which the last 2000 lines are included
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// The file to write, which must not exist yet [default: wasmspawner-debug-TIME.tar]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl DebugArgs {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        let DebugCommand::Bundle(args) = self.command;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let parts = runtime.block_on(sources::collect(&args))?;
        let output = args.output.unwrap_or_else(|| {
            format!("wasmspawner-debug-{}.tar", jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ")).into()
        });
        let contents = bundle::write(&output, &parts)?;
        writeln!(out, "{contents}\nwritten to {}; read it before you pass it on", output.display())?;
        Ok(())
    }
}
