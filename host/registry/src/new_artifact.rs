//! Pushes artifacts to a registry.

use std::collections::BTreeMap;

use bytes::Bytes;
use oci_client::Reference;
use oci_client::manifest::{OCI_IMAGE_MEDIA_TYPE, OciDescriptor, OciImageManifest};
use wasmspawner_core::values::digest::Digest;

use super::RegistryError;
use super::artifact::Artifacts;
use super::connection::{Access, Connection, Content};

/// An artifact that consists of one file and its metadata.
#[derive(Clone, Debug)]
pub struct NewArtifact {
    /// The file.
    pub file: Bytes,
    /// The media type of the file.
    pub file_type: &'static str,
    /// The config of the manifest: metadata of the file, in the format of `config_type`.
    pub config: Vec<u8>,
    /// The media type of `config`. Registries and other programs recognize the kind of artifact by it.
    pub config_type: &'static str,
    /// Annotations of the manifest.
    pub annotations: BTreeMap<String, String>,
}

impl Artifacts {
    /// Pushes an artifact under the tag of the reference. Returns the digest of its manifest.
    ///
    /// # Errors
    ///
    /// [`RegistryError`]. Files of the artifact may then remain in the registry, but the tag still points to the
    /// previous artifact.
    pub async fn push(&self, reference: &Reference, artifact: NewArtifact) -> Result<Digest, RegistryError> {
        let connection = Connection::new(reference, &self.config, Access::Write)?;
        let config = Bytes::from(artifact.config);
        let manifest = OciImageManifest {
            media_type: Some(OCI_IMAGE_MEDIA_TYPE.to_owned()),
            config: described(artifact.config_type, &config)?,
            layers: vec![described(artifact.file_type, &artifact.file)?],
            annotations: Some(artifact.annotations).filter(|annotations| !annotations.is_empty()),
            ..OciImageManifest::default()
        };
        let manifest = serde_json::to_vec(&manifest)
            .map_err(|error| RegistryError::unusable(format!("there is no manifest for it: {error}")))?;
        for file in [artifact.file, config] {
            connection.upload(Digest::sha256(&file), file).await?;
        }
        let digest = Digest::sha256(&manifest);
        let content = Content { media_type: OCI_IMAGE_MEDIA_TYPE, bytes: manifest.into() };
        connection.store_manifest(reference.tag().unwrap_or("latest"), content).await?;
        Ok(digest)
    }
}

fn described(media_type: &str, file: &Bytes) -> Result<OciDescriptor, RegistryError> {
    let size = i64::try_from(file.len());
    Ok(OciDescriptor {
        media_type: media_type.to_owned(),
        digest: Digest::sha256(file).to_string(),
        size: size.map_err(|_| RegistryError::unusable("the file is too large"))?,
        ..OciDescriptor::default()
    })
}
