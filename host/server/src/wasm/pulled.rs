//! Components from registries. They are kept in the cache, because a restart of the service must not need the registry.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use oci_client::Reference;
use serde::{Deserialize, Serialize};

use super::artifact::FILE_TYPES;
use super::engine::EngineOptions;
use crate::registry::RegistryError;
use crate::whole_file;
use wasmspawner_core::digest::Digest;

/// How long the registry may take if there is a component to fall back on.
const PATIENCE: Duration = Duration::from_secs(10);

/// A component from a registry.
pub(super) struct Pulled {
    pub(super) component: Bytes,
    /// What has to be written into the cache if the component turns out to be good.
    new: Option<(Cache, Found)>,
}

/// What was found in the registry the last time.
#[derive(Serialize, Deserialize)]
struct Found {
    reference: String,
    /// The digest of the artifact's manifest.
    manifest: String,
    /// The digest of the component.
    component: String,
}

/// The component with this reference. If the reference has a digest, or the configuration the component's, the registry
/// is asked only once. If it has a tag, and the registry cannot be asked now, the tag still means what it meant the last
/// time.
pub(super) async fn component(
    reference: &Reference,
    expected: Option<&Digest>,
    options: &EngineOptions,
) -> Result<Pulled, RegistryError> {
    let cache = options.cache.as_deref().map(|directory| Cache::of(directory, reference));
    let kept = cache.as_ref().and_then(Cache::read);
    let known = |component: Bytes| Pulled { component, new: None };
    if let Some((found, component)) = &kept
        && (reference.digest() == Some(found.manifest.as_str())
            || expected.is_some_and(|expected| expected.to_string() == found.component))
    {
        return Ok(known(component.clone()));
    }
    let time_limit = options.artifacts.time_limit();
    let time_limit = if kept.is_some() { time_limit.min(PATIENCE) } else { time_limit };
    let pulled = tokio::time::timeout(time_limit, pull(reference, options, kept.as_ref())).await;
    match pulled.unwrap_or_else(|_| Err(RegistryError::away(format!("it took longer than {time_limit:?}")))) {
        Ok((found, component)) => {
            let is_new = kept.is_none_or(|(kept, _)| kept.manifest != found.manifest);
            Ok(Pulled { component, new: cache.filter(|_| is_new).map(|cache| (cache, found)) })
        }
        Err(error) => match kept {
            Some((found, component)) if error.is_transient() => {
                let digest = found.manifest;
                tracing::warn!(%reference, %digest, %error, "the registry cannot be asked; the policy of the last time is used");
                Ok(known(component))
            }
            _ => Err(error),
        },
    }
}

async fn pull(
    reference: &Reference,
    options: &EngineOptions,
    kept: Option<&(Found, Bytes)>,
) -> Result<(Found, Bytes), RegistryError> {
    let artifact = options.artifacts.find(reference, &FILE_TYPES).await?;
    let manifest = artifact.digest.clone();
    let component = match kept {
        Some((found, component)) if found.manifest == manifest => component.clone(),
        _ => artifact.download(options.component_bytes).await?,
    };
    let digest = Digest::of(&component).to_string();
    Ok((Found { reference: reference.whole(), manifest, component: digest }, component))
}

impl Pulled {
    /// Keeps the component for later starts. It is called once the component is known to be good: until then, the one
    /// before it is what a restart falls back on.
    pub(super) fn keep(self) {
        let Some((cache, found)) = self.new else { return };
        if let Err(error) = cache.write(&found, &self.component) {
            // The only consequence is another download at the next start.
            tracing::warn!(reference = found.reference, %error, "cannot write the policy into the cache");
        }
    }
}

/// The files of one reference in the cache.
struct Cache {
    directory: PathBuf,
    reference: String,
}

impl Cache {
    fn of(cache: &Path, reference: &Reference) -> Self {
        Self { directory: cache.join("pulled"), reference: reference.whole() }
    }

    /// What was found the last time, if it is complete and unchanged.
    fn read(&self) -> Option<(Found, Bytes)> {
        let found = read_found(&self.found_file())?;
        let digest: Digest = found.component.parse().ok()?;
        let component = std::fs::read(self.component_file(&digest)).ok()?;
        (found.reference == self.reference && Digest::of(&component) == digest)
            .then_some((found, component.into()))
    }

    fn write(&self, found: &Found, component: &[u8]) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.directory)?;
        whole_file::write(&self.component_file(&Digest::of(component)), component)?;
        whole_file::write(&self.found_file(), &serde_json::to_vec(found)?)?;
        self.remove_unused()
    }

    /// Removes the components that no reference means any more.
    fn remove_unused(&self) -> std::io::Result<()> {
        let files: Vec<PathBuf> = self
            .directory
            .read_dir()?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        let used: BTreeSet<String> = files
            .iter()
            .filter_map(|file| read_found(file))
            .filter_map(|found| found.component.strip_prefix("sha256:").map(str::to_owned))
            .collect();
        let is_unused = |file: &&PathBuf| {
            let name = file.file_stem().and_then(|name| name.to_str());
            file.extension().is_some_and(|extension| extension == "wasm")
                && name.is_some_and(|name| !used.contains(name))
        };
        files.iter().filter(is_unused).try_for_each(std::fs::remove_file)
    }

    fn found_file(&self) -> PathBuf {
        self.directory.join(format!("{}.json", Digest::of(self.reference.as_bytes()).hex()))
    }

    fn component_file(&self, digest: &Digest) -> PathBuf {
        self.directory.join(format!("{}.wasm", digest.hex()))
    }
}

fn read_found(file: &Path) -> Option<Found> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}
