//! The memory that all calls of policies share.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The unit in which memory is counted, in bytes: a page of WebAssembly.
pub(crate) const PAGE: usize = 64 << 10;

/// The memory that a call takes from a pool shared with others. Dropping this returns the memory to the pool.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    of_policy: Arc<Semaphore>,
    of_all: Arc<Semaphore>,
    taken: Vec<OwnedSemaphorePermit>,
    pages: usize,
}

impl SharedMemory {
    /// Creates memory that is taken from the pages of a policy, and from those of all policies.
    pub(crate) fn new(of_policy: Arc<Semaphore>, of_all: Arc<Semaphore>) -> Self {
        Self { of_policy, of_all, taken: Vec::new(), pages: 0 }
    }

    /// Takes the missing memory up to `bytes`. Returns false if others have taken too much.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> bool {
        let missing = bytes.div_ceil(PAGE).saturating_sub(self.pages);
        let Ok(permits) = u32::try_from(missing) else { return false };
        let take = |semaphore: &Arc<Semaphore>| Arc::clone(semaphore).try_acquire_many_owned(permits).ok();
        let Some(of_policy) = take(&self.of_policy) else { return false };
        let Some(of_all) = take(&self.of_all) else { return false };
        self.taken.extend([of_policy, of_all]);
        self.pages += missing;
        true
    }
}
