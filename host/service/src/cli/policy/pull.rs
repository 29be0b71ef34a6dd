//! `wasmspawner policy pull`

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;

use super::pinned::Pinned;
use super::registry_args::{RegistryArgs, reference, refused};
use crate::cli::labs::print_json;
use wasmspawner_files::whole_file;
use wasmspawner_policies::{EngineOptions, download};

const EXAMPLES: &str = "\
Examples:
  wasmspawner policy pull ghcr.io/site/my-policy:1.0
  wasmspawner policy pull ghcr.io/site/my-policy@sha256:... --output policies/my-policy.wasm --force
  wasmspawner policy pull localhost:5000/my-policy:1.0 --plain-http localhost:5000";

/// Arguments of `policy pull`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PullArgs {
    /// The artifact, by its tag or its digest, such as ghcr.io/site/my-policy:1.0
    reference: String,
    /// The file to write [default: the last part of the repository's name, with .wasm, in this folder]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    registry: RegistryArgs,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

impl PullArgs {
    pub(super) async fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let reference = reference(&self.reference)?;
        let output = self.output.clone().unwrap_or_else(|| {
            let name = reference.repository().rsplit('/').next().unwrap_or_default();
            PathBuf::from(format!("{name}.wasm"))
        });
        self.check_free(&output)?;
        let limit = EngineOptions::default().component_bytes;
        let found = download(&reference, &self.registry.artifacts(), limit).await;
        let (component, manifest) =
            found.map_err(|error| refused(&error)).with_context(|| format!("cannot get {reference}"))?;
        self.check_free(&output)?;
        whole_file::write(&output, &component)
            .with_context(|| format!("{} cannot be written", output.display()))?;
        let pinned = Pinned::new(&reference, manifest, &component);
        if self.json {
            print_json(out, &pinned)?;
            return Ok(ExitCode::SUCCESS);
        }
        writeln!(out, "{} has {} bytes. In a configuration:", output.display(), component.len())?;
        pinned.tell(out)?;
        Ok(ExitCode::SUCCESS)
    }

    fn check_free(&self, output: &Path) -> anyhow::Result<()> {
        if output.symlink_metadata().is_ok() && !self.force {
            bail!("{} exists; give another file with --output, or replace it with --force", output.display());
        }
        Ok(())
    }
}
