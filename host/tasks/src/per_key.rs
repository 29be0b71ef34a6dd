//! Permits by key, such as a user or an address. Each key has its own permits, independent of those that other keys
//! hold.

use std::collections::HashMap;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A fixed number of permits for each key. Keys without a held permit take no memory, except for a few that are removed
/// later.
pub struct PerKey<K> {
    permits: usize,
    known: Mutex<Known<K>>,
}

struct Known<K> {
    semaphores: HashMap<K, Weak<Semaphore>>,
    /// The number of keys at which those without a held permit are removed.
    forget_at: usize,
}

/// The lower bound of `forget_at`.
const FORGET_AT_LEAST: usize = 64;

impl<K: Clone + Eq + Hash> PerKey<K> {
    /// Creates `permits` permits for each key.
    pub fn new(permits: NonZeroU32) -> Self {
        let permits = usize::try_from(permits.get()).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        let known = Known { semaphores: HashMap::new(), forget_at: FORGET_AT_LEAST };
        Self { permits, known: Mutex::new(known) }
    }

    /// Creates one permit for each key, which serializes all work on a key.
    pub fn one() -> Self {
        Self::new(NonZeroU32::MIN)
    }

    /// Takes a permit of the key, if one is free.
    pub fn try_take(&self, key: &K) -> Option<OwnedSemaphorePermit> {
        self.semaphore(key).try_acquire_owned().ok()
    }

    /// Waits for a permit of the key. Waiting callers receive permits in the order of their calls.
    pub async fn take(&self, key: &K) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed, so this never returns `None`.
        self.semaphore(key).acquire_owned().await.ok()
    }

    fn semaphore(&self, key: &K) -> Arc<Semaphore> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(semaphore) = known.semaphores.get(key).and_then(Weak::upgrade) {
            return semaphore;
        }
        if known.semaphores.len() >= known.forget_at {
            known.semaphores.retain(|_, semaphore| semaphore.strong_count() > 0);
            known.forget_at = FORGET_AT_LEAST.max(2 * known.semaphores.len());
        }
        let semaphore = Arc::new(Semaphore::new(self.permits));
        known.semaphores.insert(key.clone(), Arc::downgrade(&semaphore));
        semaphore
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_permits_of_their_own() {
        let two = PerKey::new(NonZeroU32::new(2).unwrap());
        let ada = [two.try_take(&"ada".to_owned()), two.try_take(&"ada".to_owned())];
        assert!(ada.iter().all(Option::is_some));
        assert!(two.try_take(&"ada".to_owned()).is_none());
        assert!(two.try_take(&"grace".to_owned()).is_some());
        drop(ada);
        assert!(two.try_take(&"ada".to_owned()).is_some());
    }

    #[test]
    fn keys_without_permits_are_forgotten() {
        let one = PerKey::one();
        let held = one.try_take(&"ada".to_owned());
        for number in 0..10_000 {
            drop(one.try_take(&format!("user-{number}")));
        }
        assert!(one.known.lock().unwrap().semaphores.len() <= FORGET_AT_LEAST);
        assert!(one.try_take(&"ada".to_owned()).is_none(), "a key with a permit is not forgotten");
        drop(held);
    }
}
