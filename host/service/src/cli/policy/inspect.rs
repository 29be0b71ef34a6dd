//! `wasmspawner policy inspect`

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::loaded::{PolicyFile, compiled_policies};
use crate::cli::labs::print_json;
use crate::cli::plain::plain;
use wasmspawner_policies::{EngineOptions, inspect};

/// Arguments of `policy inspect`.
#[derive(Debug, Args)]
pub(super) struct InspectArgs {
    #[command(flatten)]
    policy: PolicyFile,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
    /// Print the JSON Schema of the configuration, and nothing else
    #[arg(long, conflicts_with = "json")]
    schema: bool,
}

impl InspectArgs {
    pub(super) async fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let spec = self.policy.spec(Value::Null);
        let options = EngineOptions { cache: compiled_policies(), ..EngineOptions::default() };
        let found = inspect(spec, options).await?;
        if self.schema {
            writeln!(out, "{}", found.config_schema)?;
            return Ok(ExitCode::SUCCESS);
        }
        let told = json!({
            "name": found.policy.title, "version": found.policy.version, "description": found.policy.description,
            "built_for": found.policy.wit_version, "exports": found.policy.hooks, "imports": found.imports,
            "bytes": found.component.len(), "digest": found.policy.digest,
        });
        if self.json {
            print_json(out, &told)?;
            return Ok(ExitCode::SUCCESS);
        }
        for (name, value) in told.as_object().into_iter().flatten() {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
                other => other.to_string(),
            };
            writeln!(out, "{name:<12} {}", plain(&text))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
