//! Versions of policies that outlive a restart of the service, for `on_failure: last-good`: a changed configuration often
//! restarts it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wasmspawner_core::config::{DataSource, OnFailure};

use super::component_source::{Component, ComponentSource};
use super::engine::Engine;
use super::errors::LoadError;
use super::loader;
use super::policy::Policy;
use super::policy_name::PolicyName;
use super::spec::PolicySpec;
use crate::whole_file;
use wasmspawner_core::digest::Digest;

/// What is kept of one policy.
#[derive(Clone, Serialize, Deserialize)]
struct Kept {
    policy: String,
    in_use: Version,
    /// Whether the version in use has failed, so that it will not be a last good one.
    failed: bool,
    /// The version that answers where the one in use fails.
    last_good: Option<Version>,
}

/// What makes a version. Grants and limits are those of the present, so they are not kept.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Version {
    component: Digest,
    config: Value,
    data: BTreeMap<String, DataSource>,
    /// The digest of the public key that has signed it.
    key: Option<Digest>,
}

impl Version {
    fn of(policy: &Policy) -> Self {
        Self {
            component: policy.digest,
            config: policy.spec.config.clone(),
            data: policy.spec.data.clone(),
            key: policy.trust.key(),
        }
    }

    /// The same component with the same configuration, whoever has signed it.
    fn is(&self, policy: &Policy) -> bool {
        Self { key: policy.trust.key(), ..self.clone() } == Self::of(policy)
    }
}

/// The folder with the versions.
struct Folder(PathBuf);

/// A version in use, and where it is kept.
pub(super) struct KeptVersion {
    file: Arc<Path>,
    component: Digest,
}

impl KeptVersion {
    /// Notes that the version has failed.
    pub(super) fn has_failed(&self) {
        let (file, component) = (Arc::clone(&self.file), self.component);
        tokio::task::spawn_blocking(move || {
            let Some(mut kept) = read(&file).filter(|kept| kept.in_use.component == component) else {
                return;
            };
            kept.failed = true;
            if let Err(error) = write(&file, &kept) {
                told(&kept.policy, &error);
            }
        });
    }
}

/// The version of this policy that was in use before the service was started, if it may answer where the policy fails.
pub(super) async fn last_good(policy: &Policy, engine: &Arc<Engine>) -> Option<Policy> {
    if policy.spec.on_failure != OnFailure::LastGood {
        return None;
    }
    let folder = Folder::of(engine)?;
    let kept = read(&folder.file(policy.name()))?;
    let version = if kept.in_use.is(policy) || kept.failed { kept.last_good? } else { kept.in_use };
    if version.is(policy) || !policy.trust.includes(version.key.as_ref()) {
        return None;
    }
    let loaded = load(&folder, &version, policy, engine).await;
    let untold = |error| tracing::warn!(policy = %policy.name(), %error, "the last good version of the policy cannot be loaded");
    loaded?.map_err(untold).ok()
}

async fn load(
    folder: &Folder,
    version: &Version,
    next: &Policy,
    engine: &Arc<Engine>,
) -> Option<Result<Policy, LoadError>> {
    let path = folder.component(&version.component);
    let bytes: Bytes = tokio::fs::read(&path).await.ok()?.into();
    let spec = PolicySpec {
        source: ComponentSource::File(path),
        digest: Some(version.component),
        config: version.config.clone(),
        data: version.data.clone(),
        candidate: None,
        ..next.spec.clone()
    };
    Some(Box::pin(loader::load(engine, spec, Component::kept(bytes, next.trust.clone()))).await)
}

/// Keeps a version that is taken into use, and the last good one with it.
pub(super) fn keep(policy: &mut Policy, component: &[u8], last_good: Option<&Policy>, engine: &Engine) {
    if policy.spec.on_failure != OnFailure::LastGood {
        return;
    }
    let Some(folder) = Folder::of(engine) else { return };
    let file = folder.file(policy.name());
    let before = read(&file).filter(|kept| kept.in_use.is(policy));
    let kept = Kept {
        policy: policy.name().to_string(),
        in_use: Version::of(policy),
        failed: before.is_some_and(|before| before.failed),
        last_good: last_good.map(Version::of),
    };
    match folder.write(&file, &kept, component) {
        Ok(()) => policy.set_kept(KeptVersion { file: file.into(), component: policy.digest }),
        Err(error) => told(&kept.policy, &error),
    }
}

impl Folder {
    fn of(engine: &Engine) -> Option<Self> {
        engine.options.cache.as_ref().map(|cache| Self(cache.join("versions")))
    }

    fn write(&self, file: &Path, kept: &Kept, component: &[u8]) -> io::Result<()> {
        std::fs::create_dir_all(&self.0)?;
        let path = self.component(&kept.in_use.component);
        if !path.exists() {
            whole_file::write(&path, component)?;
        }
        write(file, kept)?;
        self.remove_unused()
    }

    /// Removes the components that no policy has any more.
    fn remove_unused(&self) -> io::Result<()> {
        let files: Vec<PathBuf> =
            self.0.read_dir()?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
        let kept: Vec<Kept> = files.iter().filter_map(|file| read(file)).collect();
        let versions = kept.iter().flat_map(|kept| [Some(&kept.in_use), kept.last_good.as_ref()]);
        let used: BTreeSet<PathBuf> =
            versions.flatten().map(|version| self.component(&version.component)).collect();
        let is_component = |file: &&PathBuf| file.extension().is_some_and(|extension| extension == "wasm");
        let unused = files.iter().filter(is_component).filter(|file| !used.contains(*file));
        unused.into_iter().try_for_each(std::fs::remove_file)
    }

    fn file(&self, policy: &PolicyName) -> PathBuf {
        self.0.join(format!("{}.json", Digest::of(policy.as_str().as_bytes()).hex()))
    }

    fn component(&self, digest: &Digest) -> PathBuf {
        self.0.join(format!("{}.wasm", digest.hex()))
    }
}

fn read(file: &Path) -> Option<Kept> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

fn write(file: &Path, kept: &Kept) -> io::Result<()> {
    whole_file::write(file, &serde_json::to_vec(kept)?)
}

/// The only consequence is that no version answers where the policy fails after a restart.
fn told(policy: &str, error: &io::Error) {
    tracing::warn!(policy, %error, "the version of the policy in use cannot be kept for a restart");
}
