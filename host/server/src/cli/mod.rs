//! The command line.

mod config_args;
pub mod names;
mod serve;
mod token;

use std::io::{stderr, stdin, stdout};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use config_args::ConfigArgs;

/// Starts, watches and stops JupyterHub labs on Kubernetes; WebAssembly policies decide what they look like.
#[derive(Debug, Parser)]
#[command(name = "wasmspawner", version, propagate_version = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the service
    Serve(serve::ServeArgs),
    /// Print a new token that the running one-machine service accepts
    Token(token::TokenArgs),
    /// Print the names that KubeSpawner and this service give a user's things
    Names(names::NamesArgs),
}

/// Does what this process was started for.
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
    /// Does what the command line says.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Serve(args) => args.run().map(|()| ExitCode::SUCCESS),
            Command::Token(args) => args.run(&mut stdout().lock()).map(|()| ExitCode::SUCCESS),
            Command::Names(args) => args.run(stdin().lock(), &mut stdout().lock(), &mut stderr().lock()),
        }
    }
}
