//! The policies that tests load, as components.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, bail};

/// All packages that are components: the policies of this repository and the misbehaving ones in `tests/guests`.
const GUESTS: [&str; 15] = [
    "policy-default",
    "policy-deny-group",
    "policy-rubin",
    "policy-sizes-by-group",
    "policy-maintenance-window",
    "policy-budget",
    "policy-gpus-by-group",
    "policy-project-storage",
    "policy-node-pools",
    "policy-sudo-by-group",
    "policy-course",
    "guest-hostile",
    "guest-stagehand",
    "guest-wrong-type",
    "guest-foreign-import",
];

/// The component of a package, such as `policy-default`, built by this test run.
///
/// # Panics
/// If it cannot be built, because then no test that needs it can run.
#[expect(clippy::panic, reason = "a test without its guest has nothing to say")]
pub fn component(package: &str) -> PathBuf {
    static BUILT: OnceLock<Result<Vec<PathBuf>, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| build().map_err(|error| format!("{error:#}")));
    let file = format!("{}.wasm", package.replace('-', "_"));
    let components = match built {
        Ok(components) => components,
        Err(error) => panic!("the guests cannot be built: {error}"),
    };
    match components.iter().find(|path| path.ends_with(&file)) {
        Some(path) => path.clone(),
        None => panic!("no guest is called {package}; there are {}", GUESTS.join(", ")),
    }
}

/// Runs cargo for every request: it rebuilds only what changed and locks the build, so this is fast, and safe from
/// several test binaries at once.
fn build() -> anyhow::Result<Vec<PathBuf>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args([
        "build",
        "--profile",
        "guest",
        "--target",
        "wasm32-wasip2",
        "--message-format=json-render-diagnostics",
    ]);
    build.args(GUESTS.iter().flat_map(|guest| ["--package", guest]));
    let output = build.current_dir(env!("CARGO_MANIFEST_DIR")).output().context("cargo does not run")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    let messages = String::from_utf8(output.stdout).context("cargo's messages")?;
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let files = artifacts.filter_map(|artifact| artifact["filenames"].as_array().cloned()).flatten();
    let paths = files.filter_map(|file| file.as_str().map(PathBuf::from));
    Ok(paths.filter(|path| path.extension().is_some_and(|extension| extension == "wasm")).collect())
}
