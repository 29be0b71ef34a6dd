//! `wasmspawner policy validate`

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use wasmspawner_core::policy::FieldError;

use super::loaded::PolicyFile;
use crate::cli::plain::plain;
use wasmspawner_policies::{FailedPolicies, LoadError, LoadErrorKind};
use wasmspawner_registry::inventory::LiveInventory;

/// Arguments of `policy validate`.
#[derive(Debug, Args)]
pub(super) struct ValidateArgs {
    #[command(flatten)]
    policy: PolicyFile,
}

impl ValidateArgs {
    /// Prints each problem on a line, with its place in the configuration. The exit code is 1 if there are problems.
    pub(super) async fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let problems = problems(&self.policy).await?;
        if problems.is_empty() {
            writeln!(out, "ok")?;
            return Ok(ExitCode::SUCCESS);
        }
        for problem in problems {
            writeln!(out, "{}", plain(&problem.to_string()))?;
        }
        Ok(ExitCode::FAILURE)
    }
}

/// Returns the problems that the policy finds in its configuration. The error says why it cannot be loaded with any
/// configuration.
pub(super) async fn problems(policy: &PolicyFile) -> anyhow::Result<Vec<FieldError>> {
    match policy.load(policy.config()?, LiveInventory::default()).await {
        Ok(_) => Ok(Vec::new()),
        Err(FailedPolicies::Load(LoadError { kind: LoadErrorKind::Config(problems), .. })) => Ok(problems),
        Err(error) => Err(error.into()),
    }
}
