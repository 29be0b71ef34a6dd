//! Verifies the signatures of components. Signatures have the forms that `cosign` writes, and are verified with the
//! public keys that the operator's configuration names. Certificates and logs of the public Sigstore are not used.

mod claim;
mod file;
mod trust;
mod trusted_keys;

pub(crate) use file::signature_files;
pub(crate) use trust::Trust;
pub use trusted_keys::{NotSigned, WrongKey};
pub(crate) use trusted_keys::{Signer, TrustedKeys};
