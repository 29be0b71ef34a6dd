//! How many calls may be under way at the same time: of all policies together, and of each.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::errors::CallErrorKind;
use super::limits::as_millis;

/// The slots for calls. A policy whose calls are slow takes at most half of them, so that others need not wait for it.
pub(super) struct Slots {
    all: Arc<Semaphore>,
    of_each_policy: usize,
    wait: Duration,
}

/// The slots of one policy.
pub(super) struct PolicySlots(Arc<Semaphore>);

/// A place among the calls that are under way. It is held until the call's instance is gone.
pub(super) struct Slot {
    _of_policy: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Slots {
    /// So many slots, for which a call waits this long.
    pub(super) fn new(number: u32, wait: Duration) -> Self {
        let number = number as usize;
        Self { all: Arc::new(Semaphore::new(number)), of_each_policy: number.div_ceil(2), wait }
    }

    pub(super) fn for_a_policy(&self) -> PolicySlots {
        PolicySlots(Arc::new(Semaphore::new(self.of_each_policy)))
    }

    /// The next slot that is free for the policy.
    pub(super) async fn take(&self, policy: &PolicySlots) -> Result<Slot, CallErrorKind> {
        let both = async {
            let of_policy = Arc::clone(&policy.0).acquire_owned().await.ok()?;
            let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some(Slot { _of_policy: of_policy, _of_all: of_all })
        };
        let taken = tokio::time::timeout(self.wait, both).await.ok().flatten();
        taken.ok_or_else(|| CallErrorKind::Overloaded(as_millis(self.wait)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_policy_has_half_of_the_slots_and_others_have_the_rest() {
        let slots = Slots::new(4, Duration::from_secs(2));
        let (one, another) = (slots.for_a_policy(), slots.for_a_policy());
        let mut taken = vec![slots.take(&one).await.unwrap(), slots.take(&one).await.unwrap()];
        assert!(matches!(slots.take(&one).await, Err(CallErrorKind::Overloaded(2000))));
        taken.push(slots.take(&another).await.unwrap());
        taken.push(slots.take(&another).await.unwrap());
        assert!(slots.take(&slots.for_a_policy()).await.is_err(), "all are taken");
        taken.remove(0);
        assert!(slots.take(&one).await.is_ok());
    }

    #[tokio::test]
    async fn one_slot_is_for_every_policy() {
        let slots = Slots::new(1, Duration::ZERO);
        for policy in [slots.for_a_policy(), slots.for_a_policy()] {
            assert!(slots.take(&policy).await.is_ok());
        }
    }
}
