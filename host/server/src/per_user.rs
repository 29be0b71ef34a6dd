//! Permits by user: each user has a number of their own, whatever the others hold.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmspawner_core::names::Username;

/// Some permits for each user. Users who hold none take no memory, apart from a few who are forgotten later.
pub(crate) struct PerUser {
    most: usize,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    users: HashMap<Username, Weak<Semaphore>>,
    /// With this many users, those who hold no permit are forgotten.
    forget_at: usize,
}

/// The smallest number of users at which some are forgotten.
const FORGET_AT_LEAST: usize = 64;

impl PerUser {
    /// `most` permits for each user.
    pub(crate) fn new(most: NonZeroU32) -> Self {
        Self { most: usize::try_from(most.get()).unwrap_or(usize::MAX), known: Mutex::default() }
    }

    /// One permit for each user, so that what they do happens one after the other.
    pub(crate) fn one() -> Self {
        Self::new(NonZeroU32::MIN)
    }

    /// A permit of the user, if one is free.
    pub(crate) fn try_take(&self, user: &Username) -> Option<OwnedSemaphorePermit> {
        self.of(user).try_acquire_owned().ok()
    }

    /// Waits for a permit of the user. Those of one user get theirs in the order in which they asked.
    pub(crate) async fn take(&self, user: &Username) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed, so there always is a permit in the end.
        self.of(user).acquire_owned().await.ok()
    }

    fn of(&self, user: &Username) -> Arc<Semaphore> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(permits) = known.users.get(user).and_then(Weak::upgrade) {
            return permits;
        }
        if known.users.len() >= known.forget_at.max(FORGET_AT_LEAST) {
            known.users.retain(|_, permits| permits.strong_count() > 0);
            known.forget_at = 2 * known.users.len();
        }
        let permits = Arc::new(Semaphore::new(self.most.min(Semaphore::MAX_PERMITS)));
        known.users.insert(user.clone(), Arc::downgrade(&permits));
        permits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> Username {
        Username::parse(name).unwrap()
    }

    #[test]
    fn each_user_has_permits_of_their_own() {
        let two = PerUser::new(NonZeroU32::new(2).unwrap());
        let ada = [two.try_take(&user("ada")), two.try_take(&user("ada"))];
        assert!(ada.iter().all(Option::is_some));
        assert!(two.try_take(&user("ada")).is_none());
        assert!(two.try_take(&user("grace")).is_some());
        drop(ada);
        assert!(two.try_take(&user("ada")).is_some());
    }

    #[test]
    fn users_without_permits_are_forgotten() {
        let one = PerUser::one();
        let held = one.try_take(&user("ada"));
        for number in 0..10_000 {
            drop(one.try_take(&user(&format!("user-{number}"))));
        }
        assert!(one.known.lock().unwrap().users.len() <= FORGET_AT_LEAST);
        assert!(one.try_take(&user("ada")).is_none(), "who holds a permit is not forgotten");
        drop(held);
    }
}
