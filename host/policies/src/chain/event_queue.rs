//! The queue of events for policies. Callers do not wait for the delivery.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Mutex;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use wasmspawner_core::policy::LabEvent;

/// The capacity of the queue.
const WAITING: usize = 1024;

/// The events that wait for their delivery.
pub(crate) struct EventQueue {
    sender: Sender<LabEvent>,
    receiver: Mutex<Receiver<LabEvent>>,
    /// True while events are dropped, so that the warning is logged once.
    full: AtomicBool,
}

impl Default for EventQueue {
    fn default() -> Self {
        let (sender, receiver) = channel(WAITING);
        Self { sender, receiver: Mutex::new(receiver), full: AtomicBool::default() }
    }
}

impl EventQueue {
    /// Adds an event. Drops it and returns false if the queue is full.
    pub(crate) fn add(&self, event: LabEvent) -> bool {
        let added = self.sender.try_send(event).is_ok();
        let was_full = self.full.swap(!added, Ordering::Relaxed);
        if !added && !was_full {
            tracing::warn!("policies hear events too slowly; some are lost");
        }
        added
    }

    /// Waits for the next event.
    pub(crate) async fn next(&self) -> Option<LabEvent> {
        self.receiver.lock().await.recv().await
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use wasmspawner_core::policy::{Happening, Subject};

    use super::*;

    fn event(number: usize) -> LabEvent {
        LabEvent {
            what: Happening::Ready,
            at: Timestamp::UNIX_EPOCH,
            username: number.to_string(),
            server: String::new(),
            operation: None,
            image: None,
            took: None,
            reason: None,
            message: None,
            subject: Subject::default(),
        }
    }

    #[tokio::test]
    async fn as_many_wait_as_may_and_the_others_are_lost() {
        let queue = EventQueue::default();
        let added = (0..WAITING + 10).filter(|number| queue.add(event(*number))).count();
        assert_eq!(added, WAITING);
        assert_eq!(queue.next().await.unwrap().username, "0");
        assert!(queue.add(event(1)));
    }
}
