//! The command line.

mod assignment;
mod blueprint_files;
mod blueprints;
mod check;
mod columns;
mod compile_policy;
mod config_args;
mod crds;
mod debug;
mod environments;
#[cfg(test)]
mod example;
mod images;
mod jobs;
mod labs;
mod migrate;
mod migrate_nublado;
mod migration_output;
pub mod names;
#[cfg(test)]
mod pages;
mod plain;
mod policy;
mod render;
mod schema;
mod serve;
mod token;

use std::io::{stderr, stdin, stdout};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use config_args::ConfigArgs;

use wasmspawner_telemetry::init_tool;

const EXAMPLES: &str = "\
Examples:
  wasmspawner serve --local --runtime simulated      try it out on this machine
  wasmspawner check --config wasmspawner.yaml        is the configuration good, and every policy?
  wasmspawner render -c wasmspawner.yaml --user ada  the objects that ada's lab would have
  wasmspawner labs list --state-dir DIR              what runs now

Each command explains itself with --help.";

/// Starts, watches and stops JupyterHub labs on Kubernetes; WebAssembly policies decide what they look like.
#[derive(Debug, Parser)]
#[command(name = "wasmspawner", version, propagate_version = true, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the service
    Serve(serve::ServeArgs),
    /// Check the configuration and every policy, and run nothing
    Check(check::CheckArgs),
    /// Print the Kubernetes objects that a spawn would create, without a cluster
    Render(render::RenderArgs),
    /// Look at the labs of a running service, start and stop them
    Labs(labs::LabsArgs),
    /// Show single operations on labs: what happened, and when
    Jobs(jobs::JobsArgs),
    /// Look at the environments of a running service, free and remove targets
    Environments(environments::EnvironmentsArgs),
    /// Show the blueprints of a running service
    Blueprints(blueprints::BlueprintsArgs),
    /// Show the images that a running service knows
    Images(images::ImagesArgs),
    /// Make, try, test and publish a policy, and show those of a running service
    Policy(policy::PolicyArgs),
    /// Collect what a bug report needs
    Debug(debug::DebugArgs),
    /// Print a new token that the running one-machine service accepts
    Token(token::TokenArgs),
    /// Print the JSON Schema of the configuration
    Schema(schema::SchemaArgs),
    /// Print the custom resource definitions that the service needs in a cluster
    Crds(crds::CrdsArgs),
    /// Compile a component for the service, which runs this in a process of its own
    #[command(name = wasmspawner_policies::COMPILE_COMMAND, hide = true)]
    CompilePolicy(compile_policy::CompilePolicyArgs),
    /// Convert the configuration of another spawner
    Migrate(migrate::MigrateArgs),
    /// Print the names that KubeSpawner and this service give to a user's objects
    Names(names::NamesArgs),
}

/// Runs the program: parses the command line, runs the command and prints its error.
#[expect(clippy::print_stderr, reason = "the one place where a failed command says why")]
pub fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

impl Cli {
    /// Runs the command and returns the exit code.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        if !matches!(self.command, Command::Serve(_)) {
            init_tool()?;
        }
        match self.command {
            Command::Serve(args) => args.run().map(|()| ExitCode::SUCCESS),
            Command::Check(args) => args.run(&mut stdout().lock(), &mut stderr()),
            Command::Render(args) => args.run(&mut stdout().lock()).map(|()| ExitCode::SUCCESS),
            Command::Labs(args) => args.run(&mut stdout().lock()),
            Command::Jobs(args) => args.run(&mut stdout().lock()).map(|()| ExitCode::SUCCESS),
            Command::Environments(args) => args.run(&mut stdout().lock()).map(|()| ExitCode::SUCCESS),
            Command::Blueprints(args) => args.run(&mut stdout().lock()).map(|()| ExitCode::SUCCESS),
            Command::Images(args) => args.run(&mut stdout().lock()).map(|()| ExitCode::SUCCESS),
            Command::Policy(args) => args.run(&mut stdout().lock()),
            Command::Debug(args) => args.run(&mut stdout().lock()).map(|()| ExitCode::SUCCESS),
            Command::Token(args) => args.run(&mut stdout().lock()).map(|()| ExitCode::SUCCESS),
            Command::Schema(args) => args.run(&mut stdout().lock()).map(|()| ExitCode::SUCCESS),
            Command::Crds(args) => args.run(&mut stdout().lock()).map(|()| ExitCode::SUCCESS),
            Command::CompilePolicy(args) => args.run().map(|()| ExitCode::SUCCESS),
            Command::Migrate(args) => args.run(&mut stdout().lock()),
            Command::Names(args) => args.run(stdin().lock(), &mut stdout().lock(), &mut stderr().lock()),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_definition_of_the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
