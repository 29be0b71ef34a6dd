//! Loading a policy for a command.

use std::io::Read as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use wasmspawner_policies::{EngineOptions, FailedPolicies, Policies, PolicySpec};
use wasmspawner_registry::inventory::LiveInventory;

/// A policy and its configuration.
#[derive(Debug, Args)]
pub(super) struct PolicyFile {
    /// The policy: a WebAssembly component, or a folder with exactly one
    pub(super) policy: PathBuf,
    /// The policy's configuration, as YAML or JSON [default: {}]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

impl PolicyFile {
    /// Reads the configuration from the file.
    pub(super) fn config(&self) -> anyhow::Result<Value> {
        Ok(self.config.as_deref().map(read).transpose()?.unwrap_or_else(|| json!({})))
    }

    /// Loads the policy as the service does, with this configuration.
    pub(super) async fn load(
        &self,
        config: Value,
        inventory: LiveInventory,
    ) -> Result<Policies, FailedPolicies> {
        let options = EngineOptions { inventory, cache: compiled_policies(), ..EngineOptions::default() };
        Policies::load(vec![self.spec(config)], options).await
    }

    pub(super) fn spec(&self, config: Value) -> PolicySpec {
        PolicySpec { config, ..PolicySpec::new("policy", &self.policy) }
    }
}

/// Returns the folder of compiled policies, or `None` if none can be made. A large policy, for example in Python, takes
/// long to compile, and authors try it often.
pub(super) fn compiled_policies() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")))?;
    let folder = cache.join("wasmspawner/compiled-policies");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    Some(folder)
}

/// Reads a file of YAML or JSON; `-` is standard input.
pub(super) fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> anyhow::Result<T> {
    let named = || path.display().to_string();
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    let text = text.with_context(|| format!("{} cannot be read", named()))?;
    serde_saphyr::from_str(&text).map_err(|error| anyhow!("{}: {error}", named()))
}
