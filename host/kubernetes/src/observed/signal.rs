//! The signal that wakes a follower, with the events that are kept for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::Event;
use tokio::sync::Notify;

/// The maximum number of events that are kept for one lab. Kubernetes counts repeats in one event, so a lab rarely has
/// twenty.
const MAX_EVENTS: usize = 200;

/// Wakes one follower, and keeps the Kubernetes events about its lab while the follower wants them.
#[derive(Default)]
pub(super) struct FollowerSignal {
    wake: Notify,
    /// The events by uid; `None` while events are not kept.
    events: Mutex<Option<BTreeMap<String, Arc<Event>>>>,
}

impl FollowerSignal {
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Waits until something has changed since the last call.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    pub(super) fn put_event(&self, event: Arc<Event>) {
        let mut kept = self.events();
        let Some(events) = kept.as_mut() else { return };
        events.insert(event.metadata.uid.clone().unwrap_or_default(), event);
        if events.len() > MAX_EVENTS {
            let oldest = events.iter().min_by_key(|(_, event)| event.metadata.creation_timestamp.clone());
            if let Some(uid) = oldest.map(|(uid, _)| uid.clone()) {
                events.remove(&uid);
            }
        }
        drop(kept);
        self.wake();
    }

    /// The events that are kept; `None` while events are not kept.
    pub(super) fn events(&self) -> MutexGuard<'_, Option<BTreeMap<String, Arc<Event>>>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
