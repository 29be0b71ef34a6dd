use std::sync::Arc;

use super::trusted_keys::{Signer, TrustedKeys};
use wasmspawner_core::values::digest::Digest;

/// The keys that may sign a policy, if a signature is required, and the key that signed it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trust {
    keys: Option<Arc<TrustedKeys>>,
    signer: Option<Signer>,
}

impl Trust {
    pub(crate) fn new(keys: Option<Arc<TrustedKeys>>, signer: Option<Signer>) -> Self {
        Self { keys, signer }
    }

    /// Returns the same keys, for another component that was signed with `key`.
    pub(crate) fn for_key(&self, key: Option<&Digest>) -> Self {
        let signer = self.keys.as_ref().zip(key).and_then(|(keys, key)| keys.signer_with(key));
        Self { keys: self.keys.clone(), signer }
    }

    /// Returns the digest of the key that signed the policy.
    pub(crate) fn key(&self) -> Option<Digest> {
        self.signer.as_ref().map(|signer| signer.key)
    }

    /// Returns the key that signed the policy, as the configuration names it.
    pub(crate) fn key_name(&self) -> Option<&str> {
        self.signer.as_ref().map(|signer| signer.name.as_str())
    }

    /// Returns true if a component with a signature by `key`, or with none if `key` is `None`, may be used now.
    pub(crate) fn includes(&self, key: Option<&Digest>) -> bool {
        self.keys.as_ref().is_none_or(|keys| key.is_some_and(|key| keys.signer_with(key).is_some()))
    }
}
