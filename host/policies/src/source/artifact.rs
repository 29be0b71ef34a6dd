//! Components as artifacts in registries, in the form that the CNCF describes for WebAssembly and that `wkg` reads and
//! writes (<https://tag-runtime.cncf.io/wgs/wasm/deliverables/wasm-oci-artifact/>).

use bytes::Bytes;
use oci_client::Reference;
use wasmspawner_core::values::digest::Digest;

use wasmspawner_registry::{Artifacts, RegistryError};

/// The media type of a component's file.
pub(crate) const FILE_TYPE: &str = "application/wasm";
/// The accepted media types of a component's file: the current one, and the one that tools wrote before it.
pub(crate) const FILE_TYPES: [&str; 2] = [FILE_TYPE, "application/vnd.wasm.content.layer.v1+wasm"];

/// Downloads the component of an artifact. Returns it with the digest of the artifact's manifest.
///
/// # Errors
///
/// [`RegistryError`], also if the component has more than `limit` bytes.
pub async fn download(
    reference: &Reference,
    registries: &Artifacts,
    limit: u64,
) -> Result<(Bytes, Digest), RegistryError> {
    let found = registries.find(reference, &FILE_TYPES).await?;
    let digest = found.digest;
    Ok((found.download(limit).await?, digest))
}
