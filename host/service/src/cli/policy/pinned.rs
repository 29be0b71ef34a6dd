//! A component in a registry, in the form in which a configuration pins it.

use std::io::Write;

use oci_client::Reference;
use serde::Serialize;
use wasmspawner_core::values::digest::Digest;

/// The part of a configuration that pins a policy, so that nobody can replace it: the digest of the artifact and the
/// digest of the component.
#[derive(Debug, Serialize)]
pub(super) struct Pinned {
    oci: String,
    digest: Digest,
    bytes: usize,
}

impl Pinned {
    /// Pins a component. `manifest` is the digest of the artifact's manifest.
    pub(super) fn new(reference: &Reference, manifest: Digest, component: &[u8]) -> Self {
        let (registry, repository) = (reference.registry().to_owned(), reference.repository().to_owned());
        Self {
            oci: Reference::with_digest(registry, repository, manifest.to_string()).whole(),
            digest: Digest::sha256(component),
            bytes: component.len(),
        }
    }

    /// Prints the two lines for the policy's entry in a configuration.
    pub(super) fn tell(&self, out: &mut impl Write) -> std::io::Result<()> {
        writeln!(out, "  oci: {}\n  digest: {}", self.oci, self.digest)
    }
}
