//! Versions of policies that outlive a restart of the service, for `on_failure: last-good`: a changed configuration often
//! restarts it.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use wasmspawner_core::config::OnFailure;

use super::component_source::{Component, ComponentSource};
use super::engine::Engine;
use super::errors::LoadError;
use super::kept_version::{Kept, KeptVersion, Version};
use super::loader;
use super::policy::Policy;
use super::policy_name::PolicyName;
use super::spec::PolicySpec;
use crate::whole_file;
use wasmspawner_core::digest::Digest;

fn version_of(policy: &Policy) -> Version {
    Version {
        component: policy.digest,
        config: policy.spec.config.clone(),
        data: policy.spec.data.clone(),
        key: policy.trust.key(),
    }
}

/// True for the same component with the same configuration, whoever has signed it.
fn is_version_of(version: &Version, policy: &Policy) -> bool {
    Version { key: policy.trust.key(), ..version.clone() } == version_of(policy)
}

/// The folder with the versions.
struct Folder(PathBuf);

/// The version of this policy that was in use before the service was started, if it may answer where the policy fails.
pub(super) async fn last_good(policy: &Policy, engine: &Arc<Engine>) -> Option<Policy> {
    if policy.spec.on_failure != OnFailure::LastGood {
        return None;
    }
    let folder = Folder::of(engine)?;
    let kept = Kept::read(&folder.file(policy.name()))?;
    let version =
        if is_version_of(&kept.in_use, policy) || kept.failed { kept.last_good? } else { kept.in_use };
    if is_version_of(&version, policy) || !policy.trust.includes(version.key.as_ref()) {
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
    let before = Kept::read(&file).filter(|kept| is_version_of(&kept.in_use, policy));
    let kept = Kept {
        policy: policy.name().to_string(),
        in_use: version_of(policy),
        failed: before.is_some_and(|before| before.failed),
        last_good: last_good.map(version_of),
    };
    match folder.write(&file, &kept, component) {
        Ok(()) => policy.set_kept(KeptVersion { file: file.into(), component: policy.digest }),
        Err(error) => kept.not_written(&error),
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
        kept.write(file)?;
        self.remove_unused()
    }

    /// Removes the components that no policy has any more.
    fn remove_unused(&self) -> io::Result<()> {
        let files: Vec<PathBuf> =
            self.0.read_dir()?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
        let kept: Vec<Kept> = files.iter().filter_map(|file| Kept::read(file)).collect();
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
