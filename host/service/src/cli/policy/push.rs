//! `wasmspawner policy push`

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use super::loaded::{PolicyFile, compiled_policies};
use super::pinned::Pinned;
use super::registry_args::{RegistryArgs, reference, refused};
use crate::cli::labs::print_json;
use crate::cli::plain::plain;
use wasmspawner_policies::{EngineOptions, artifact, inspect};

const EXAMPLES: &str = "\
Examples:
  wasmspawner policy push my-policy/my-policy.wasm ghcr.io/site/my-policy:1.0
  wasmspawner policy push my-policy localhost:5000/my-policy:1.0 --plain-http localhost:5000
  wasmspawner policy push my-policy ghcr.io/site/my-policy:1.0 --json | jq -r .oci

The artifact has the form that the CNCF describes for WebAssembly, so `wkg`, `oras` and `skopeo` read it, too. The time in it is that of
the push, or of SOURCE_DATE_EPOCH if that is set: then the same component always has the same digest.";

/// Arguments of `policy push`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PushArgs {
    /// The policy: a WebAssembly component, or a folder with exactly one
    file: PathBuf,
    /// Where it goes: a registry, a repository and a tag, such as ghcr.io/site/my-policy:1.0
    reference: String,
    #[command(flatten)]
    registry: RegistryArgs,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

impl PushArgs {
    pub(super) async fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let reference = reference(&self.reference)?;
        if reference.digest().is_some() {
            bail!("{reference}: the digest follows from what is pushed; give a tag, such as {}:1.0", {
                format!("{}/{}", reference.registry(), reference.repository())
            });
        }
        let created = created()?;
        let policy = PolicyFile { policy: self.file.clone(), config: None };
        let options = EngineOptions { cache: compiled_policies(), ..EngineOptions::default() };
        let found = inspect(policy.spec(Value::Null), options).await;
        let found = found.with_context(|| format!("{} is not pushed", self.file.display()))?;
        let pushed = self.registry.artifacts().push(&reference, artifact(&found, created)).await;
        let manifest =
            pushed.map_err(|error| refused(&error)).with_context(|| format!("cannot push to {reference}"))?;
        let pinned = Pinned::new(&reference, manifest, &found.component);
        if self.json {
            print_json(out, &pinned)?;
            return Ok(ExitCode::SUCCESS);
        }
        let policy = plain(&found.policy.title).into_owned();
        writeln!(out, "{reference} is {policy} {} now. In a configuration:", plain(&found.policy.version))?;
        pinned.tell(out)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the creation time of the artifact, in whole seconds.
fn created() -> anyhow::Result<Timestamp> {
    let seconds = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text.parse().map_err(|_| {
            anyhow!("SOURCE_DATE_EPOCH is {text:?}; it must be a number of seconds, or not set")
        })?,
        Err(_) => Timestamp::now().as_second(),
    };
    Timestamp::from_second(seconds).context("SOURCE_DATE_EPOCH is no time")
}
