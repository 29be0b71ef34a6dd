//! One after the other, user by user.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};
use wasmspawner_core::names::Username;

/// How many users may have their turn at once, at best: two of the same remainder wait for each other.
const LANES: usize = 256;

/// Lets the requests of one user come one after the other.
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
    /// Waits until it is this user's turn, which lasts as long as the answer is kept.
    pub(super) async fn of(&self, user: &Username) -> OwnedMutexGuard<()> {
        let mut hasher = DefaultHasher::new();
        user.hash(&mut hasher);
        let lane = usize::try_from(hasher.finish()).unwrap_or_default() % LANES;
        Arc::clone(&self.lanes[lane]).lock_owned().await
    }
}
