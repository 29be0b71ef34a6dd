//! Limits the number of concurrent calls and their memory, of all policies together and of each policy.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::shared_memory::{PAGE, SharedMemory};
use super::{MEMORY_SLOT, as_millis};
use crate::errors::CallErrorKind;

/// The slots and the memory for calls. A policy with slow or large calls takes at most half of either, so that others
/// need not wait for it.
pub(crate) struct Slots {
    all: Arc<Semaphore>,
    memory: Arc<Semaphore>,
    number: usize,
    pages: usize,
    wait: Duration,
}

/// The slots and the memory of one policy.
pub(crate) struct PolicySlots {
    calls: Arc<Semaphore>,
    memory: Arc<Semaphore>,
}

/// A slot of a call in progress. It is held until the call's instance is dropped.
pub(crate) struct Slot {
    _of_policy: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Slots {
    /// Creates `number` slots, for which a call waits up to `wait`, and `memory` bytes for all calls together. One call
    /// may always have as much memory as the engine allows.
    pub(crate) fn new(number: u32, wait: Duration, memory: usize) -> Self {
        let (number, pages) = (number as usize, memory.max(MEMORY_SLOT) / PAGE);
        let (all, memory) = (Arc::new(Semaphore::new(number)), Arc::new(Semaphore::new(pages)));
        Self { all, memory, number, pages, wait }
    }

    pub(crate) fn for_a_policy(&self) -> PolicySlots {
        let pages = self.pages.div_ceil(2).max(MEMORY_SLOT / PAGE);
        PolicySlots {
            calls: Arc::new(Semaphore::new(self.number.div_ceil(2))),
            memory: Arc::new(Semaphore::new(pages)),
        }
    }

    /// Waits for a free slot for the policy.
    pub(crate) async fn take(&self, policy: &PolicySlots) -> Result<Slot, CallErrorKind> {
        let both = async {
            let of_policy = Arc::clone(&policy.calls).acquire_owned().await.ok()?;
            let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some(Slot { _of_policy: of_policy, _of_all: of_all })
        };
        let taken = tokio::time::timeout(self.wait, both).await.ok().flatten();
        taken.ok_or_else(|| CallErrorKind::Overloaded(as_millis(self.wait)))
    }

    /// Returns the memory for a call of the policy.
    pub(crate) fn memory(&self, policy: &PolicySlots) -> SharedMemory {
        let (of_policy, of_all) = (Arc::clone(&policy.memory), Arc::clone(&self.memory));
        SharedMemory::new(of_policy, of_all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_policy_has_half_of_the_slots_and_others_have_the_rest() {
        let slots = Slots::new(4, Duration::from_secs(2), 0);
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
        let slots = Slots::new(1, Duration::ZERO, 0);
        for policy in [slots.for_a_policy(), slots.for_a_policy()] {
            assert!(slots.take(&policy).await.is_ok());
        }
    }

    #[test]
    fn a_policy_has_half_of_the_memory_and_others_have_the_rest() {
        let slots = Slots::new(64, Duration::ZERO, 4 * MEMORY_SLOT);
        let (one, another) = (slots.for_a_policy(), slots.for_a_policy());
        let (mut first, mut second) = (slots.memory(&one), slots.memory(&one));
        assert!(
            first.grow_to(1)
                && first.grow_to(PAGE)
                && first.grow_to(MEMORY_SLOT)
                && second.grow_to(MEMORY_SLOT)
        );
        assert!(!slots.memory(&one).grow_to(1), "it has half of it");
        let (mut third, mut fourth) = (slots.memory(&another), slots.memory(&another));
        assert!(third.grow_to(MEMORY_SLOT) && fourth.grow_to(MEMORY_SLOT - PAGE));
        assert!(
            fourth.grow_to(MEMORY_SLOT) && !slots.memory(&slots.for_a_policy()).grow_to(1),
            "nothing is left"
        );
        drop(first);
        assert!(slots.memory(&one).grow_to(MEMORY_SLOT));
    }

    #[test]
    fn one_call_may_have_what_the_engine_allows_however_little_memory_there_is() {
        let slots = Slots::new(64, Duration::ZERO, 0);
        assert!(slots.memory(&slots.for_a_policy()).grow_to(MEMORY_SLOT));
    }
}
