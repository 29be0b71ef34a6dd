//! Signatures that are stored beside an artifact, in the two forms of `cosign sign`: in an artifact whose tag is made
//! of the digest (<https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md>), or, since cosign 3, in a
//! bundle that refers to the artifact (<https://github.com/sigstore/cosign/blob/main/specs/BUNDLE_SPEC.md>).

use std::collections::BTreeMap;

use bytes::Bytes;
use oci_client::manifest::{OciDescriptor, OciImageManifest};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use wasmspawner_core::values::digest::Digest;

use super::RegistryError;
use super::artifact::Artifact;
use super::connection::Connection;

/// The maximum number of signatures that are read in each form.
const MAX_SIGNATURES: usize = 32;
/// The maximum size of one signature, in bytes.
const MAX_SIGNATURE_BYTES: u64 = 256 << 10;

/// The media type of the signed payload in the older form.
const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The annotation that contains the signature in the older form.
const ANNOTATION: &str = "dev.cosignproject.cosign/signature";
/// The prefix of the media type of a bundle, for all versions.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
/// The annotation with the predicate type of a bundle.
const PREDICATE: &str = "dev.sigstore.bundle.predicateType";
/// The predicate type of a signature. Statements about other things, such as a bill of materials, have another one.
pub const SIGNATURE_PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";

/// A signature as it is stored. It has not been verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoredSignature {
    /// The signed payload, and the signature in base64.
    SimpleSigning {
        /// JSON that names the digest of the artifact.
        payload: String,
        /// The signature of the payload.
        signature: String,
    },
    /// A bundle: JSON with both the payload and the signature.
    Bundle(String),
}

/// The signatures of an artifact.
#[derive(Debug, Default)]
pub struct FoundSignatures {
    /// The signatures that could be read.
    pub signatures: Vec<StoredSignature>,
    /// The error of a signature that could not be read, if any. That signature may have been a valid one.
    pub problem: Option<RegistryError>,
}

/// The artifacts that refer to another one.
#[derive(Deserialize)]
struct Referrers {
    manifests: Vec<Referrer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Referrer {
    digest: String,
    #[serde(default)]
    artifact_type: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl FoundSignatures {
    /// Adds a signature that could be read. An unusable signature does not prevent the use of others. Fails only if the
    /// registry does not answer.
    fn add(&mut self, read: Result<Option<StoredSignature>, RegistryError>) -> Result<(), RegistryError> {
        match read {
            Ok(signature) => self.signatures.extend(signature),
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => self.problem = Some(error),
        }
        Ok(())
    }
}

impl Artifact {
    /// Reads the signatures that are stored beside the artifact. Returns none if there are none.
    ///
    /// # Errors
    ///
    /// [`RegistryError`] if the registry does not answer.
    pub async fn signatures(&self) -> Result<FoundSignatures, RegistryError> {
        let mut found = FoundSignatures::default();
        self.read_bundles(&mut found).await?;
        self.read_simple_signatures(&mut found).await?;
        Ok(found)
    }

    async fn read_simple_signatures(&self, found: &mut FoundSignatures) -> Result<(), RegistryError> {
        let tag = format!("{}.sig", tag_of(&self.digest));
        let manifest = if_there(self.connection.manifest(&tag).await);
        let manifest: OciImageManifest =
            match manifest.and_then(|manifest| manifest.as_deref().map(json).transpose()) {
                Ok(Some(manifest)) => manifest,
                Ok(None) => return Ok(()),
                Err(error) => return found.add(Err(error)),
            };
        let signed = manifest.layers.into_iter().filter(|layer| layer.media_type == SIMPLE_SIGNING);
        for layer in signed.take(MAX_SIGNATURES) {
            let signature = layer.annotations.as_ref().and_then(|annotations| annotations.get(ANNOTATION));
            let Some(signature) = signature.cloned() else { continue };
            let payload = text(&self.connection, &layer).await;
            found.add(payload.map(|payload| Some(StoredSignature::SimpleSigning { payload, signature })))?;
        }
        Ok(())
    }

    async fn read_bundles(&self, found: &mut FoundSignatures) -> Result<(), RegistryError> {
        let referrers = match self.referrers().await {
            Ok(referrers) => referrers,
            Err(error) => return found.add(Err(error)),
        };
        let bundles = referrers.into_iter().filter(|one| one.artifact_type.starts_with(BUNDLE));
        let signatures = bundles.filter(|one| may_be_signature(&one.annotations));
        for referrer in signatures.take(MAX_SIGNATURES) {
            found.add(bundle(&self.connection, &referrer.digest).await)?;
        }
        Ok(())
    }

    /// Reads the list of artifacts that refer to this one. A registry without the API for referrers has the same list
    /// under a tag.
    async fn referrers(&self) -> Result<Vec<Referrer>, RegistryError> {
        let listed =
            self.connection.referrers(&self.digest).await.and_then(|listed| json::<Referrers>(&listed));
        match listed {
            Ok(listed) => Ok(listed.manifests),
            Err(error) if error.is_transient() => Err(error),
            Err(_) => {
                let listed = if_there(self.connection.manifest(&tag_of(&self.digest)).await)?;
                let listed: Option<Referrers> = listed.as_deref().map(json).transpose()?;
                Ok(listed.map(|listed| listed.manifests).unwrap_or_default())
            }
        }
    }
}

/// Reads the bundle of this manifest, if it is a signature.
async fn bundle(registry: &Connection, digest: &str) -> Result<Option<StoredSignature>, RegistryError> {
    let Some(manifest) = if_there(registry.manifest(digest).await)? else { return Ok(None) };
    let manifest: OciImageManifest = json(&manifest)?;
    let layer = manifest.layers.iter().find(|layer| layer.media_type.starts_with(BUNDLE));
    let is_other = manifest.annotations.as_ref().is_some_and(|annotations| !may_be_signature(annotations));
    let Some(layer) = layer.filter(|_| !is_other) else { return Ok(None) };
    Ok(Some(StoredSignature::Bundle(text(registry, layer).await?)))
}

/// Returns false for the annotations of a statement that is not a signature, such as a large bill of materials.
fn may_be_signature(annotations: &BTreeMap<String, String>) -> bool {
    annotations.get(PREDICATE).is_none_or(|predicate| predicate == SIGNATURE_PREDICATE)
}

fn tag_of(digest: &Digest) -> String {
    format!("sha256-{}", digest.hex())
}

async fn text(registry: &Connection, file: &OciDescriptor) -> Result<String, RegistryError> {
    let bytes = registry.file(&file.digest, MAX_SIGNATURE_BYTES).await?;
    String::from_utf8(bytes.into()).map_err(|_| RegistryError::unusable("a signature in it is not text"))
}

fn if_there(answer: Result<Bytes, RegistryError>) -> Result<Option<Bytes>, RegistryError> {
    match answer {
        Err(RegistryError::NotFound) => Ok(None),
        answer => answer.map(Some),
    }
}

fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, RegistryError> {
    let wrong = |_| RegistryError::unusable("what the registry has where signatures are stored is none");
    serde_json::from_slice(bytes).map_err(wrong)
}
