//! `wasmspawner policy new`

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;

use super::project::{CrateName, Language, files};

/// Arguments of `policy new`.
#[derive(Debug, Args)]
pub(super) struct NewArgs {
    /// The folder to make; its last part is the name of the policy
    folder: PathBuf,
    /// The language of the policy
    #[arg(long, value_enum, default_value_t)]
    language: Language,
}

impl NewArgs {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let folder = self.folder;
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let name = CrateName::parse(name)?;
        if folder.is_file() {
            bail!("{} is a file; name another folder", folder.display());
        }
        if folder.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
            bail!("{} exists and is not empty; name another folder", folder.display());
        }
        for (path, text) in files(&name, self.language) {
            let file = folder.join(path);
            let written = file.parent().map_or(Ok(()), std::fs::create_dir_all);
            let written = written.and_then(|()| std::fs::write(&file, text));
            written.with_context(|| format!("{} cannot be written", file.display()))?;
        }
        let (folder, name) = (folder.display(), name.as_str());
        let first = match self.language {
            Language::Rust => format!("cargo test --manifest-path {folder}/Cargo.toml"),
            Language::Python => format!(
                "python3 -m venv {folder}/.venv && {folder}/.venv/bin/pip install {folder}/vendor/wasmspawner-policy pytest\n  \
                 {folder}/.venv/bin/pytest {folder}"
            ),
            Language::Javascript => format!("npm install --prefix {folder} && npm test --prefix {folder}"),
        };
        writeln!(
            out,
            "{folder} has the policy {name}. Next:\n  {first}\n  wasmspawner policy build {folder}\n  \
             wasmspawner policy test {folder}/{name}.wasm {folder}/cases --config {folder}/config.yaml"
        )?;
        Ok(ExitCode::SUCCESS)
    }
}
