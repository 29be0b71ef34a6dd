//! A component in a registry, as a configuration names it for good.

use std::io::Write;

use oci_client::Reference;
use serde::Serialize;
use wasmspawner_core::digest::Digest;

/// What a configuration says of a policy so that nobody can replace it: the artifact by its digest, and the digest of the
/// component.
#[derive(Debug, Serialize)]
pub(super) struct Pinned {
    oci: String,
    digest: Digest,
    bytes: usize,
}

impl Pinned {
    /// `manifest` is the digest of the artifact's manifest.
    pub(super) fn new(reference: &Reference, manifest: Digest, component: &[u8]) -> Self {
        let (registry, repository) = (reference.registry().to_owned(), reference.repository().to_owned());
        Self {
            oci: Reference::with_digest(registry, repository, manifest.to_string()).whole(),
            digest: Digest::of(component),
            bytes: component.len(),
        }
    }

    /// Prints the two lines for the policy's entry in a configuration.
    pub(super) fn tell(&self, out: &mut impl Write) -> std::io::Result<()> {
        writeln!(out, "  oci: {}\n  digest: {}", self.oci, self.digest)
    }
}
