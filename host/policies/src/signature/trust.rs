use std::sync::Arc;

use super::trusted_keys::{Signer, TrustedKeys};
use wasmspawner_core::digest::Digest;

/// Who may sign a policy, if somebody has to, and who has signed it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trust {
    keys: Option<Arc<TrustedKeys>>,
    signer: Option<Signer>,
}

impl Trust {
    pub(crate) fn new(keys: Option<Arc<TrustedKeys>>, signer: Option<Signer>) -> Self {
        Self { keys, signer }
    }

    /// The same keys, for something else that one of them has signed.
    pub(crate) fn of(&self, key: Option<&Digest>) -> Self {
        let signer = self.keys.as_ref().zip(key).and_then(|(keys, key)| keys.signer_with(key));
        Self { keys: self.keys.clone(), signer }
    }

    /// The digest of the key that has signed the policy.
    pub(crate) fn key(&self) -> Option<Digest> {
        self.signer.as_ref().map(|signer| signer.key)
    }

    /// The key that has signed the policy, as the configuration names it.
    pub(crate) fn key_name(&self) -> Option<&str> {
        self.signer.as_ref().map(|signer| signer.name.as_str())
    }

    /// True if what this key has signed, or nobody, may be used now.
    pub(crate) fn includes(&self, key: Option<&Digest>) -> bool {
        self.keys.as_ref().is_none_or(|keys| key.is_some_and(|key| keys.signer_with(key).is_some()))
    }
}
