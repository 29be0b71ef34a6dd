//! `wasmspawner policy build`

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};
use clap::Args;
use serde::Deserialize;
use wasmspawner_core::digest::Digest;

/// What policies are built for.
const TARGET: &str = "wasm32-wasip2";

/// Arguments of `policy build`.
#[derive(Debug, Args)]
pub(super) struct BuildArgs {
    /// The folder of the policy, with its Cargo.toml
    #[arg(default_value = ".")]
    folder: PathBuf,
}

/// A message of `cargo build --message-format=json`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    reason: String,
    manifest_path: PathBuf,
    filenames: Vec<PathBuf>,
}

impl BuildArgs {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let manifest = self.folder.join("Cargo.toml");
        if !manifest.is_file() {
            bail!("{} does not exist; `wasmspawner policy new` makes a policy", manifest.display());
        }
        require_target()?;
        let mut cargo = Command::new("cargo");
        cargo.args([
            "build",
            "--release",
            "--target",
            TARGET,
            "--message-format=json-render-diagnostics",
            "--manifest-path",
        ]);
        let built = cargo.arg(&manifest).stderr(std::process::Stdio::inherit()).output();
        let built = built.context("cargo cannot be started; install Rust from https://rustup.rs")?;
        if !built.status.success() {
            bail!("cargo could not build the policy");
        }
        let component = component(&built.stdout, &manifest)?;
        let name = self.folder.canonicalize()?.file_name().unwrap_or_default().to_owned();
        let copy = self.folder.join(name).with_extension("wasm");
        let bytes =
            std::fs::read(&component).with_context(|| format!("{} cannot be read", component.display()))?;
        std::fs::write(&copy, &bytes).with_context(|| format!("{} cannot be written", copy.display()))?;
        writeln!(out, "{}  {} bytes  {}", copy.display(), bytes.len(), Digest::of(&bytes))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The component that cargo has made of the package.
fn component(messages: &[u8], manifest: &Path) -> anyhow::Result<PathBuf> {
    let manifest = manifest.canonicalize()?;
    let messages =
        messages.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Message>(line).ok());
    let of_package =
        messages.filter(|message| message.reason == "compiler-artifact" && message.manifest_path == manifest);
    let mut made = of_package.flat_map(|message| message.filenames);
    let made = made.find(|file| file.extension().is_some_and(|extension| extension == "wasm"));
    made.context(
        "cargo has made no component; the library of the policy needs crate-type = [\"cdylib\", \"rlib\"]",
    )
}

fn require_target() -> anyhow::Result<()> {
    let found = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    let folder = found.context("rustc cannot be started; install Rust from https://rustup.rs")?.stdout;
    let folder = String::from_utf8_lossy(&folder);
    if !Path::new(folder.trim()).is_dir() {
        bail!("Rust cannot build for {TARGET} yet; run `rustup target add {TARGET}`");
    }
    Ok(())
}
