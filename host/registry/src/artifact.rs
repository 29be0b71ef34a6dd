//! Artifacts that consist of one file, such as a WebAssembly component.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use oci_client::Reference;
use oci_client::manifest::{OciDescriptor, OciManifest};
use wasmspawner_core::config::RegistriesConfig;

use super::RegistryError;
use super::connection::{Access, Connection};
use wasmspawner_core::values::digest::Digest;

/// The artifacts of registries. Clones share the configuration.
#[derive(Clone, Debug, Default)]
pub struct Artifacts {
    pub(super) config: Arc<RegistriesConfig>,
}

/// An artifact in a registry, of which only the manifest has been read so far.
pub struct Artifact {
    pub(super) connection: Connection,
    file: OciDescriptor,
    /// The digest of the manifest.
    pub digest: Digest,
}

impl Artifacts {
    /// Creates the access to artifacts with this configuration.
    pub fn new(config: RegistriesConfig) -> Self {
        Self { config: Arc::new(config) }
    }

    /// Returns the time limit of a download.
    pub fn time_limit(&self) -> Duration {
        self.config.timeout.unsigned_abs()
    }

    /// Finds the artifact. Its file must have one of the media types.
    ///
    /// # Errors
    ///
    /// [`RegistryError`], also if the artifact has no such file, or more than one.
    pub async fn find(&self, reference: &Reference, media_types: &[&str]) -> Result<Artifact, RegistryError> {
        let connection = Connection::new(reference, &self.config, Access::Read)?;
        let name = reference.digest().or(reference.tag()).unwrap_or("latest");
        let manifest = connection.manifest(name).await?;
        let digest = Digest::sha256(&manifest);
        let manifest = serde_json::from_slice(&manifest)
            .map_err(|_| RegistryError::unusable("the registry has sent something that is no manifest"))?;
        let OciManifest::Image(manifest) = manifest else {
            let message = "it is an index of several images; give the tag or the digest of one artifact";
            return Err(RegistryError::unusable(message));
        };
        let mut files =
            manifest.layers.into_iter().filter(|layer| media_types.contains(&layer.media_type.as_str()));
        match (files.next(), files.next()) {
            (Some(file), None) => Ok(Artifact { connection, file, digest }),
            _ => Err(RegistryError::unusable(format!(
                "it must have one file of the type {}",
                media_types.join(" or ")
            ))),
        }
    }
}

impl Artifact {
    /// Downloads the file, and checks it against the digest in the manifest.
    ///
    /// # Errors
    ///
    /// [`RegistryError`], also if the file has more than `limit` bytes.
    pub async fn download(self, limit: u64) -> Result<Bytes, RegistryError> {
        let announced = u64::try_from(self.file.size).unwrap_or(u64::MAX);
        if announced > limit {
            return Err(RegistryError::TooLarge { size: announced, limit });
        }
        self.connection.file(&self.file.digest, limit).await
    }
}
