//! `wasmspawner policy build`

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};
use clap::Args;
use serde::Deserialize;
use wasmspawner_core::values::digest::Digest;

use wasmspawner_files::whole_file;

/// The compilation target of policies.
const TARGET: &str = "wasm32-wasip2";

/// Arguments of `policy build`.
#[derive(Debug, Args)]
pub(super) struct BuildArgs {
    /// The folder of the policy, with its Cargo.toml, pyproject.toml or package.json
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
        build(&self.folder)?.tell(out)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A component that was built.
pub(super) struct Built {
    pub(super) component: PathBuf,
    pub(super) digest: Digest,
    bytes: usize,
}

impl Built {
    pub(super) fn tell(&self, out: &mut impl Write) -> std::io::Result<()> {
        writeln!(out, "{}  {} bytes  {}", self.component.display(), self.bytes, self.digest)
    }
}

/// Builds the policy of a folder, in the language of its manifest.
pub(super) fn build(folder: &Path) -> anyhow::Result<Built> {
    let has = |file: &str| folder.join(file).is_file();
    let name = folder.canonicalize().unwrap_or_default().file_name().unwrap_or_default().to_owned();
    let component = folder.join(name).with_extension("wasm");
    if has("Cargo.toml") {
        build_rust(&folder.join("Cargo.toml"), &component)?;
    } else if has("pyproject.toml") {
        build_python(folder, &component)?;
    } else if has("package.json") {
        build_javascript(folder, &component)?;
    } else {
        bail!(
            "{} has no Cargo.toml, pyproject.toml or package.json; `wasmspawner policy new` makes a policy",
            folder.display()
        );
    }
    let bytes =
        std::fs::read(&component).with_context(|| format!("{} cannot be read", component.display()))?;
    Ok(Built { component, digest: Digest::sha256(&bytes), bytes: bytes.len() })
}

fn build_python(folder: &Path, component: &Path) -> anyhow::Result<()> {
    let own = folder.join(".venv/bin/python");
    let python = if own.is_file() { own } else { PathBuf::from("python3") };
    let has_sdk = Command::new(&python).args(["-c", "import wasmspawner_policy"]).output();
    let has_sdk =
        has_sdk.with_context(|| format!("{} cannot be started; install Python 3.11", python.display()))?;
    if !has_sdk.status.success() {
        let here = folder.display();
        bail!(
            "{} does not have the SDK; run `python3 -m venv {here}/.venv` and `{here}/.venv/bin/pip install \
             {here}/vendor/wasmspawner-policy`",
            python.display()
        );
    }
    let mut build = Command::new(&python);
    build.args(["-m", "wasmspawner_policy", "build"]).arg(folder).arg("-o").arg(component);
    finish(build)
}

fn build_javascript(folder: &Path, component: &Path) -> anyhow::Result<()> {
    // As in npm, which installs the shared packages of a workspace in a folder above the policies.
    let places = folder.canonicalize()?;
    let mut places = places.ancestors().map(|place| place.join("node_modules/.bin/wasmspawner-policy"));
    let Some(program) = places.find(|place| place.exists()) else {
        bail!("the SDK is not installed yet; run `npm install --prefix {}`", folder.display());
    };
    let mut build = Command::new(program.canonicalize()?);
    build.arg("build").arg(folder).arg("-o").arg(component);
    finish(build)
}

/// Runs a program that reports its own errors.
fn finish(mut command: Command) -> anyhow::Result<()> {
    let status = command.stdout(std::process::Stdio::null()).status();
    let status = status.with_context(|| format!("{} cannot be started", command.get_program().display()))?;
    if !status.success() {
        bail!("the policy could not be built; the lines above say why");
    }
    Ok(())
}

fn build_rust(manifest: &Path, copy: &Path) -> anyhow::Result<()> {
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
    let built = cargo.arg(manifest).stderr(std::process::Stdio::inherit()).output();
    let built = built.context("cargo cannot be started; install Rust from https://rustup.rs")?;
    if !built.status.success() {
        bail!("cargo could not build the policy");
    }
    let component = component(&built.stdout, manifest)?;
    let copied = std::fs::read(&component).and_then(|bytes| whole_file::write(copy, &bytes));
    copied.with_context(|| format!("{} cannot be written", copy.display()))
}

/// Finds the component that cargo has made of the package.
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
