//! The changes that wait to be written, in order and bounded.

use std::collections::{BTreeMap, HashMap};

use super::key::Key;

/// The place of a change in the order of all changes of this process.
pub(super) type Ticket = u64;

/// A change that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change<T> {
    /// The key that is replaced. Of several changes of one key, only the last is written. `None`: something is added.
    pub(super) key: Option<Key>,
    /// What is to be written.
    pub(super) content: T,
    /// How often NATS has refused it.
    refusals: u8,
}

impl<T> Change<T> {
    pub(super) fn new(key: Option<Key>, content: T) -> Self {
        Self { key, content, refusals: 0 }
    }
}

/// The changes that wait, oldest first.
#[derive(Debug)]
pub(super) struct Queue<T> {
    waiting: BTreeMap<Ticket, Change<T>>,
    tickets: HashMap<Key, Ticket>,
    next: Ticket,
    limit: usize,
    dropped: u64,
}

impl<T> Queue<T> {
    /// Creates a queue for at most `limit` changes.
    pub(super) fn new(limit: usize) -> Self {
        Self { waiting: BTreeMap::new(), tickets: HashMap::new(), next: 1, limit, dropped: 0 }
    }

    /// The number of changes that were dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// True if nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a change. If too many wait, the oldest are dropped.
    pub(super) fn push(&mut self, change: Change<T>) {
        let known = change.key.as_ref().and_then(|key| self.tickets.get(key)).copied();
        if let Some(ticket) = known {
            self.waiting.insert(ticket, change);
            return;
        }
        let ticket = self.next;
        self.next += 1;
        self.insert(ticket, change);
    }

    /// Takes the oldest changes out of the queue.
    pub(super) fn take(&mut self, most: usize) -> Vec<(Ticket, Change<T>)> {
        std::iter::from_fn(|| self.pop()).take(most).collect()
    }

    /// Puts a change back that could not be written, unless there is a later one of its key.
    pub(super) fn put_back(&mut self, ticket: Ticket, change: Change<T>) {
        if change.key.as_ref().is_none_or(|key| !self.tickets.contains_key(key)) {
            self.insert(ticket, change);
        }
    }

    /// Puts a change that was refused behind all others, so that it does not stop them, unless there is a later one of its
    /// key. Gives it up once it was refused `most` times, and returns false then.
    pub(super) fn put_last(&mut self, mut change: Change<T>, most: u8) -> bool {
        change.refusals += 1;
        if change.key.as_ref().is_some_and(|key| self.tickets.contains_key(key)) {
            return true;
        }
        if change.refusals >= most {
            self.give_up();
            return false;
        }
        self.push(change);
        true
    }

    /// Notes that a change was given up.
    pub(super) fn give_up(&mut self) {
        self.dropped += 1;
    }

    fn insert(&mut self, ticket: Ticket, change: Change<T>) {
        if let Some(key) = &change.key {
            self.tickets.insert(key.clone(), ticket);
        }
        self.waiting.insert(ticket, change);
        while self.waiting.len() > self.limit {
            self.pop();
            self.give_up();
        }
    }

    fn pop(&mut self) -> Option<(Ticket, Change<T>)> {
        let (ticket, change) = self.waiting.pop_first()?;
        if let Some(key) = &change.key {
            self.tickets.remove(key);
        }
        Some((ticket, change))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wasmspawner_core::names::lab::JobId;

    use super::*;

    fn added(content: u32) -> Change<u32> {
        Change::new(None, content)
    }

    fn of_job(job: u128, content: u32) -> Change<u32> {
        Change::new(Some(Key::Job(JobId::new(uuid::Uuid::from_u128(job)))), content)
    }

    fn contents(queue: &mut Queue<u32>) -> Vec<u32> {
        queue.take(usize::MAX).into_iter().map(|(_, change)| change.content).collect()
    }

    #[test]
    fn only_the_last_state_of_a_key_is_written_in_its_first_place() {
        let mut queue = Queue::new(9);
        for it in [of_job(1, 10), added(11), of_job(1, 12), of_job(2, 13)] {
            queue.push(it);
        }
        assert_eq!(contents(&mut queue), [12, 11, 13]);
        assert!(queue.is_empty());
    }

    #[test]
    fn beyond_the_limit_the_oldest_are_dropped_and_counted() {
        let mut queue = Queue::new(2);
        (1..=5).for_each(|number| queue.push(added(number)));
        assert_eq!((queue.dropped(), contents(&mut queue)), (3, vec![4, 5]));
    }

    #[test]
    fn what_could_not_be_written_keeps_its_place_unless_it_is_outdated() {
        let mut queue = Queue::new(9);
        for it in [of_job(1, 10), added(11)] {
            queue.push(it);
        }
        let taken = queue.take(9);
        for it in [added(12), of_job(1, 13)] {
            queue.push(it);
        }
        for (ticket, change) in taken {
            queue.put_back(ticket, change);
        }
        assert_eq!(contents(&mut queue), [11, 12, 13]);
    }

    #[test]
    fn what_is_refused_goes_behind_all_others_and_is_given_up_at_last() {
        let mut queue = Queue::new(9);
        for it in [added(10), of_job(1, 11), added(12)] {
            queue.push(it);
        }
        for (_, change) in queue.take(2) {
            assert!(queue.put_last(change, 2));
        }
        let taken = queue.take(9);
        assert_eq!(taken.iter().map(|(_, change)| change.content).collect::<Vec<_>>(), [12, 10, 11]);
        queue.push(of_job(1, 13));
        let kept: Vec<_> = taken.into_iter().skip(1).map(|(_, change)| queue.put_last(change, 2)).collect();
        assert_eq!((kept, queue.dropped()), (vec![false, true], 1), "there is a later one of the job");
        assert_eq!(contents(&mut queue), [13]);
    }

    proptest! {
        /// Failed writes in any order lose nothing that fits.
        #[test]
        fn nothing_that_fits_is_lost(
            changes in prop::collection::vec((prop::option::of(0_u128..4), any::<bool>()), 0..60)
        ) {
            let mut queue = Queue::new(1000);
            let (mut written, mut last) = (Vec::new(), HashMap::new());
            for (number, (job, works)) in (0..).zip(changes) {
                let change = job.map_or(added(number), |job| of_job(job, number));
                last.insert(job.map_or((1, u128::from(number)), |job| (0, job)), number);
                queue.push(change);
                for (ticket, change) in queue.take(3) {
                    if works { written.push(change.content) } else { queue.put_back(ticket, change) }
                }
            }
            written.extend(contents(&mut queue));
            for number in last.values() {
                prop_assert_eq!(written.iter().filter(|one| *one == number).count(), 1);
            }
            prop_assert_eq!(queue.dropped(), 0);
        }
    }
}
