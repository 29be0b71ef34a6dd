//! The service and its tools.

use std::process::ExitCode;

use clap::Parser;
use wasmspawner::cli::Cli;

#[expect(clippy::print_stderr, reason = "the one place where a failed command says why")]
fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
