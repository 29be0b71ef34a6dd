//! Names of the objects that an installation of the service has once, in the service's own namespace.

use wasmspawner_core::names::LabelValue;
use wasmspawner_core::values::digest::Digest;

/// Returns the name of such an object: `base`, with a digest of the installation's name unless that is the namespace's.
/// Installations in one namespace thus have different objects.
pub(crate) fn object_name(base: &str, namespace: &str, instance: &LabelValue) -> String {
    if instance.as_str() == namespace {
        base.to_owned()
    } else {
        format!("{base}-{}", Digest::sha256(instance.as_str().as_bytes()).short_hex(8))
    }
}
