//! Locks by user: requests of one user run one after the other.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};
use wasmspawner_core::names::Username;

/// The number of locks. Users whose hashes have the same remainder share one and wait for each other.
const LANES: usize = 256;

/// Locks by user.
#[derive(Clone)]
pub(super) struct UserLocks {
    lanes: Arc<[Arc<Mutex<()>>]>,
}

impl Default for UserLocks {
    fn default() -> Self {
        Self { lanes: (0..LANES).map(|_| Arc::default()).collect() }
    }
}

impl UserLocks {
    /// Waits for the user's lock. It is held until the returned guard is dropped.
    pub(super) async fn of(&self, user: &Username) -> OwnedMutexGuard<()> {
        let mut hasher = DefaultHasher::new();
        user.hash(&mut hasher);
        let lane = usize::try_from(hasher.finish()).unwrap_or_default() % LANES;
        Arc::clone(&self.lanes[lane]).lock_owned().await
    }
}
