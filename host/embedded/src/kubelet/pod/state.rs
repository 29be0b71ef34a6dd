//! The status of a pod as it is now: changed by the steps of its life, watched by what publishes it.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};
use tokio::sync::watch;

use crate::kubelet::clock::Clock;
use crate::kubelet::status;

/// A pod's status and its watchers.
pub(super) struct PodState {
    pub(super) pod: Arc<Pod>,
    pub(super) clock: Clock,
    pub(super) status: watch::Sender<PodStatus>,
}

impl PodState {
    pub(super) fn read<T>(&self, look: impl FnOnce(&PodStatus) -> T) -> T {
        look(&self.status.borrow())
    }

    /// Changes the status; phase and conditions follow.
    pub(super) fn change(&self, change: impl FnOnce(&mut PodStatus)) {
        self.status.send_if_modified(|current| {
            let before = current.clone();
            change(current);
            status::update(&self.pod, current, self.clock.now());
            *current != before
        });
    }

    pub(super) fn container<T>(&self, name: &str, look: impl FnOnce(&ContainerStatus) -> T) -> Option<T> {
        self.read(|current| status::container(current, name).map(look))
    }

    pub(super) fn change_container(&self, name: &str, change: impl FnOnce(&mut ContainerStatus)) {
        self.change(|current| {
            if let Some(container) = status::container_mut(current, name) {
                change(container);
            }
        });
    }

    pub(super) fn set_waiting(&self, name: &str, reason: &str, message: impl Into<String>) {
        self.change_container(name, |container| {
            container.state = Some(status::waiting(reason, message));
            container.ready = false;
            container.started = Some(false);
        });
    }

    /// Waits until the status is as wanted.
    pub(super) async fn until(&self, wanted: impl FnMut(&PodStatus) -> bool) {
        // The sender outlives this receiver.
        let _ = self.status.subscribe().wait_for(wanted).await;
    }
}
