//! `wasmspawner policy new`

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;

use super::project::{CrateName, files};

/// Arguments of `policy new`.
#[derive(Debug, Args)]
pub(super) struct NewArgs {
    /// The folder to make; its last part is the name of the policy
    folder: PathBuf,
}

impl NewArgs {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let folder = self.folder;
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let name = CrateName::parse(name)?;
        let is_used = folder.read_dir().is_ok_and(|mut entries| entries.next().is_some());
        if is_used || folder.is_file() {
            bail!("{} exists and is not empty; name another folder", folder.display());
        }
        for (path, text) in files(&name) {
            let file = folder.join(path);
            let written = file.parent().map_or(Ok(()), std::fs::create_dir_all);
            let written = written.and_then(|()| std::fs::write(&file, text));
            written.with_context(|| format!("{} cannot be written", file.display()))?;
        }
        let (folder, name) = (folder.display(), name.as_str());
        writeln!(
            out,
            "{folder} has the policy {name}. Next:\n  cargo test --manifest-path {folder}/Cargo.toml\n  \
             wasmspawner policy build {folder}\n  \
             wasmspawner policy test {folder}/{name}.wasm {folder}/cases --config {folder}/config.yaml"
        )?;
        Ok(ExitCode::SUCCESS)
    }
}
