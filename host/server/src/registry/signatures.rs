//! Signatures that are stored beside an artifact, as `cosign sign` does it: in an artifact with a tag made of the digest
//! (<https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md>), or, since cosign 3, as a bundle that refers to
//! the artifact (<https://github.com/sigstore/cosign/blob/main/specs/BUNDLE_SPEC.md>).

use bytes::Bytes;
use oci_client::manifest::{OciDescriptor, OciImageManifest};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use wasmspawner_core::digest::Digest;

use super::RegistryError;
use super::artifact::Artifact;
use super::connection::Connection;

/// The most signatures that are read of one form.
const MOST: usize = 32;
/// The most that is read of one signature, in bytes.
const SIGNATURE: u64 = 256 << 10;

/// The type of what is signed in the older form.
const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The annotation that has the signature in the older form.
const ANNOTATION: &str = "dev.cosignproject.cosign/signature";
/// How the type of a bundle begins, whatever its version.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";

/// A signature as it is stored. Nothing about it has been checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoredSignature {
    /// What is signed, and the signature in base64.
    SimpleSigning {
        /// JSON that names the digest of the artifact.
        payload: String,
        /// The signature of the payload.
        signature: String,
    },
    /// JSON with both.
    Bundle(String),
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
}

impl Artifact {
    /// The signatures that are stored beside the artifact; none if there are none.
    ///
    /// # Errors
    ///
    /// [`RegistryError`], also if what is stored there is no signature.
    pub async fn signatures(&self) -> Result<Vec<StoredSignature>, RegistryError> {
        let mut found = bundles(&self.connection, &self.digest).await?;
        found.extend(simple_signatures(&self.connection, &self.digest).await?);
        Ok(found)
    }
}

async fn simple_signatures(
    registry: &Connection,
    digest: &Digest,
) -> Result<Vec<StoredSignature>, RegistryError> {
    let tag = format!("{}.sig", tag_of(digest));
    let Some(manifest) = if_there(registry.manifest(&tag).await)? else { return Ok(Vec::new()) };
    let manifest: OciImageManifest = json(&manifest)?;
    let signed = manifest.layers.into_iter().filter(|layer| layer.media_type == SIMPLE_SIGNING);
    let mut found = Vec::new();
    for layer in signed.take(MOST) {
        let signature = layer.annotations.as_ref().and_then(|annotations| annotations.get(ANNOTATION));
        let Some(signature) = signature.cloned() else { continue };
        found.push(StoredSignature::SimpleSigning { payload: text(registry, &layer).await?, signature });
    }
    Ok(found)
}

async fn bundles(registry: &Connection, digest: &Digest) -> Result<Vec<StoredSignature>, RegistryError> {
    let Some(referrers) = referrers(registry, digest).await? else { return Ok(Vec::new()) };
    let bundles = referrers.manifests.into_iter().filter(|one| one.artifact_type.starts_with(BUNDLE));
    let mut found = Vec::new();
    for referrer in bundles.take(MOST) {
        let Some(manifest) = if_there(registry.manifest(&referrer.digest).await)? else { continue };
        if Digest::of(&manifest).to_string() != referrer.digest {
            return Err(RegistryError::unusable("the registry has sent something else than was asked for"));
        }
        let manifest: OciImageManifest = json(&manifest)?;
        for layer in manifest.layers.iter().filter(|layer| layer.media_type.starts_with(BUNDLE)).take(1) {
            found.push(StoredSignature::Bundle(text(registry, layer).await?));
        }
    }
    Ok(found)
}

/// What the registry lists as referring to the artifact. A registry that does not know the question has the same list under a
/// tag.
async fn referrers(registry: &Connection, digest: &Digest) -> Result<Option<Referrers>, RegistryError> {
    let listed = match registry.referrers(digest).await {
        Err(RegistryError::NotFound | RegistryError::Unusable(_)) => {
            if_there(registry.manifest(&tag_of(digest)).await)?
        }
        listed => Some(listed?),
    };
    listed.map(|listed| json(&listed)).transpose()
}

fn tag_of(digest: &Digest) -> String {
    format!("sha256-{}", digest.hex())
}

async fn text(registry: &Connection, file: &OciDescriptor) -> Result<String, RegistryError> {
    let bytes = registry.file(&file.digest, SIGNATURE).await?;
    if Digest::of(&bytes).to_string() != file.digest {
        return Err(RegistryError::unusable("the registry has sent something else than was asked for"));
    }
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
