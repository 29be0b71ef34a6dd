//! What is known of the pod now: written by the steps of its life, watched by what publishes its status.

use tokio::sync::watch;

use crate::kubelet::status::{ContainerRecord, ContainerState, PodRecord};

/// The pod's record and its watchers.
#[derive(Debug)]
pub(crate) struct PodState(watch::Sender<PodRecord>);

impl PodState {
    pub(crate) fn new(record: watch::Sender<PodRecord>) -> Self {
        Self(record)
    }

    pub(crate) fn read<T>(&self, look: impl FnOnce(&PodRecord) -> T) -> T {
        look(&self.0.borrow())
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut PodRecord)) {
        self.0.send_if_modified(|record| {
            let before = record.clone();
            change(record);
            *record != before
        });
    }

    pub(crate) fn container<T>(&self, name: &str, look: impl FnOnce(&ContainerRecord) -> T) -> Option<T> {
        self.read(|record| record.container(name).map(look))
    }

    pub(crate) fn change_container(&self, name: &str, change: impl FnOnce(&mut ContainerRecord)) {
        self.change(|record| {
            if let Some(container) = record.container_mut(name) {
                change(container);
            }
        });
    }

    pub(crate) fn waits(&self, name: &str, reason: &str, message: impl Into<String>) {
        self.change_container(name, |container| {
            container.state = ContainerState::waiting(reason, message);
            container.ready = false;
            container.started = false;
        });
    }

    pub(crate) async fn until(&self, holds: impl FnMut(&PodRecord) -> bool) {
        // The state outlives its own watchers.
        let _ = self.0.subscribe().wait_for(holds).await;
    }
}
