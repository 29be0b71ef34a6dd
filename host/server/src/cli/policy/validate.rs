//! `wasmspawner policy validate`

use std::io::Write;
use std::process::ExitCode;

use clap::Args;

use super::loaded::PolicyFile;
use crate::cli::plain::plain;
use crate::inventory::LiveInventory;
use crate::wasm::{FailedPolicies, LoadErrorKind};

/// Arguments of `policy validate`.
#[derive(Debug, Args)]
pub(super) struct ValidateArgs {
    #[command(flatten)]
    policy: PolicyFile,
}

impl ValidateArgs {
    /// Prints each problem on a line, with its place in the configuration; the exit code is 1 then.
    pub(super) async fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        match self.policy.load(self.policy.config()?, LiveInventory::default()).await {
            Ok(_) => {
                writeln!(out, "ok")?;
                Ok(ExitCode::SUCCESS)
            }
            Err(FailedPolicies::Load(error)) => {
                let LoadErrorKind::Config(problems) = &error.kind else { return Err(error.into()) };
                for problem in problems {
                    writeln!(out, "{}", plain(&problem.to_string()))?;
                }
                Ok(ExitCode::FAILURE)
            }
            Err(error) => Err(error.into()),
        }
    }
}
