//! Components from registries. The cache keeps them, because a restart of the service must not need the registry.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use oci_client::Reference;
use serde::{Deserialize, Serialize};

use super::artifact::FILE_TYPES;
use crate::engine::EngineOptions;
use crate::errors::LoadErrorKind;
use crate::signature::{NotSigned, Signer, TrustedKeys};
use wasmspawner_core::values::digest::Digest;
use wasmspawner_files::whole_file;
use wasmspawner_registry::{FoundSignatures, RegistryError, StoredSignature};

/// The time limit for the registry if there is a component to fall back on.
const PATIENCE: Duration = Duration::from_secs(10);

/// A component from a registry.
pub(crate) struct Pulled {
    pub(crate) component: Bytes,
    /// The key that signed the component, if a signature is required.
    pub(crate) signer: Option<Signer>,
    /// The entry to be written to the cache if the component turns out to be good.
    new: Option<(Cache, Found)>,
}

/// The last result from the registry.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Found {
    reference: String,
    /// The digest of the artifact's manifest.
    manifest: Digest,
    /// The digest of the component.
    component: Digest,
    /// The signatures of the artifact. They are kept so that a restart can verify them again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    signatures: Vec<StoredSignature>,
}

/// The requirements that a component must meet before it is used.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    reference: &'a Reference,
    /// The keys, one of which must have signed the artifact.
    keys: Option<&'a TrustedKeys>,
    options: &'a EngineOptions,
}

/// Returns the component with this reference. If the reference has a digest, or the configuration has the digest of the
/// component, the registry is needed only once. If the reference has a tag, and the registry does not answer, the last
/// known meaning of the tag is used. A cached component is verified again each time, because the keys may have changed.
pub(crate) async fn component(
    reference: &Reference,
    expected: Option<&Digest>,
    keys: Option<&TrustedKeys>,
    options: &EngineOptions,
) -> Result<Pulled, LoadErrorKind> {
    let wanted = Wanted { reference, keys, options };
    let cache = options.cache.as_deref().map(|directory| Cache::from_reference(directory, reference));
    let kept = cache.as_ref().and_then(Cache::read);
    let known = |component: Bytes, signer| Pulled { component, signer, new: None };
    if let Some((found, component)) = &kept
        && (reference.digest().is_some_and(|digest| digest == found.manifest.to_string())
            || expected == Some(&found.component))
        && let Ok(signer) = wanted.signer(&found.manifest, &found.signatures, None)
    {
        return Ok(known(component.clone(), signer));
    }
    let time_limit = options.artifacts.time_limit();
    let time_limit = if kept.is_some() { time_limit.min(PATIENCE) } else { time_limit };
    let late = || wanted.refused(RegistryError::away(format!("it took longer than {time_limit:?}")));
    let pulled = tokio::time::timeout(time_limit, wanted.pull(kept.as_ref())).await;
    match (pulled.unwrap_or_else(|_| Err(late())), kept) {
        (Ok((found, component, signer)), kept) => {
            let is_new = kept.is_none_or(|(kept, _)| kept != found);
            Ok(Pulled { component, signer, new: cache.filter(|_| is_new).map(|cache| (cache, found)) })
        }
        (Err(LoadErrorKind::Registry { error, .. }), Some((found, component))) if error.is_transient() => {
            let Ok(signer) = wanted.signer(&found.manifest, &found.signatures, None) else {
                tracing::warn!(%reference, "what was kept of the policy is not signed by a key of `signed_by`, so it is not used while the registry is away");
                return Err(wanted.refused(error));
            };
            let digest = found.manifest;
            tracing::warn!(%reference, %digest, %error, "the registry cannot be asked; the policy of the last time is used");
            Ok(known(component, signer))
        }
        (Err(error), _) => Err(error),
    }
}

impl Wanted<'_> {
    async fn pull(
        self,
        kept: Option<&(Found, Bytes)>,
    ) -> Result<(Found, Bytes, Option<Signer>), LoadErrorKind> {
        let refused = |error| self.refused(error);
        let artifact = self.options.artifacts.find(self.reference, &FILE_TYPES).await.map_err(refused)?;
        let manifest = artifact.digest;
        let FoundSignatures { signatures, problem } = match self.keys {
            Some(_) => artifact.signatures().await.map_err(refused)?,
            None => FoundSignatures::default(),
        };
        // An artifact without a valid signature is not downloaded.
        let signer = self.signer(&manifest, &signatures, problem)?;
        let component = match kept {
            Some((found, component)) if found.manifest == manifest => component.clone(),
            _ => artifact.download(self.options.component_bytes).await.map_err(refused)?,
        };
        let digest = Digest::sha256(&component);
        let found = Found { reference: self.reference.whole(), manifest, component: digest, signatures };
        Ok((found, component, signer))
    }

    /// Returns the signer of the artifact with this manifest, or `None` if no signature is required.
    fn signer(
        self,
        manifest: &Digest,
        signatures: &[StoredSignature],
        problem: Option<RegistryError>,
    ) -> Result<Option<Signer>, LoadErrorKind> {
        let Some(keys) = self.keys else { return Ok(None) };
        let signer = keys.signer_of_artifact(manifest, signatures);
        signer.map(Some).ok_or_else(|| {
            let (registry, repository) = (self.reference.registry(), self.reference.repository());
            let artifact = format!("{registry}/{repository}@{manifest}");
            LoadErrorKind::NotSigned(NotSigned::artifact(
                artifact,
                signatures.len(),
                problem.map(|problem| problem.to_string()),
            ))
        })
    }

    fn refused(self, error: RegistryError) -> LoadErrorKind {
        LoadErrorKind::Registry { reference: self.reference.whole(), error }
    }
}

impl Pulled {
    /// Keeps the component for later starts. Called once the component is known to be good: until then, a restart must
    /// fall back on the previous one.
    pub(crate) fn keep(self) {
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
    fn from_reference(cache: &Path, reference: &Reference) -> Self {
        Self { directory: cache.join("pulled"), reference: reference.whole() }
    }

    /// Returns the last result, if it is complete and unchanged.
    fn read(&self) -> Option<(Found, Bytes)> {
        let found = read_found(&self.found_file())?;
        let component = std::fs::read(self.component_file(&found.component)).ok()?;
        (found.reference == self.reference && Digest::sha256(&component) == found.component)
            .then_some((found, component.into()))
    }

    fn write(&self, found: &Found, component: &[u8]) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.directory)?;
        whole_file::write(&self.component_file(&Digest::sha256(component)), component)?;
        whole_file::write(&self.found_file(), &serde_json::to_vec(found)?)?;
        self.remove_unused()
    }

    /// Removes the components that no reference points to any more.
    fn remove_unused(&self) -> std::io::Result<()> {
        let files: Vec<PathBuf> = self
            .directory
            .read_dir()?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        let used: BTreeSet<String> =
            files.iter().filter_map(|file| read_found(file)).map(|found| found.component.hex()).collect();
        let is_unused = |file: &&PathBuf| {
            let name = file.file_stem().and_then(|name| name.to_str());
            file.extension().is_some_and(|extension| extension == "wasm")
                && name.is_some_and(|name| !used.contains(name))
        };
        files.iter().filter(is_unused).try_for_each(std::fs::remove_file)
    }

    fn found_file(&self) -> PathBuf {
        self.directory.join(format!("{}.json", Digest::sha256(self.reference.as_bytes()).hex()))
    }

    fn component_file(&self, digest: &Digest) -> PathBuf {
        self.directory.join(format!("{}.wasm", digest.hex()))
    }
}

fn read_found(file: &Path) -> Option<Found> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}
