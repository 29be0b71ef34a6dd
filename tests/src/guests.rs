//! The policies that tests load, as components.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, bail};

/// All packages that are components: the policies of this repository and the misbehaving ones in `tests/guests`.
const GUESTS: [&str; 5] =
    ["policy-*", "guest-hostile", "guest-stagehand", "guest-wrong-type", "guest-foreign-import"];
/// The folder with the components of this test run. `make test` builds them once; otherwise each process asks cargo.
const FOLDER: &str = "WASMSPAWNER_TEST_COMPONENTS";

/// The component of a package, such as `policy-default`, built by this test run.
///
/// # Panics
/// If it cannot be built, because then no test that needs it can run.
#[expect(clippy::panic, reason = "a test without its guest has nothing to say")]
pub fn component(package: &str) -> PathBuf {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| match std::env::var_os(FOLDER) {
        Some(folder) => Ok(folder.into()),
        None => build().map_err(|error| format!("{error:#}")),
    });
    match built {
        Ok(folder) => {
            let component = folder.join(format!("{}.wasm", package.replace('-', "_")));
            assert!(component.exists(), "{} is missing; is there a guest {package}?", component.display());
            component
        }
        Err(error) => panic!("the guests cannot be built: {error}"),
    }
}

/// Runs cargo, which rebuilds only what changed and locks the build, so this is fast, and safe from several processes at
/// once. Returns the folder of the components.
fn build() -> anyhow::Result<PathBuf> {
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
    let mut components = paths.filter(|path| path.extension().is_some_and(|extension| extension == "wasm"));
    let component = components.next().context("cargo has built no component")?;
    Ok(component.parent().context("a file without a folder")?.to_owned())
}
