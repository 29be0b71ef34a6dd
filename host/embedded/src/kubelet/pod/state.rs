//! The current status of a pod. The steps of its life change it, and the publisher watches it.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, PodStatus};

use super::Worker;
use crate::kubelet::status;

impl Worker {
    pub(super) fn read_status<T>(&self, look: impl FnOnce(&PodStatus) -> T) -> T {
        look(&self.status.borrow())
    }

    /// Changes the status, and updates the phase and the conditions.
    pub(super) fn change(&self, change: impl FnOnce(&mut PodStatus)) {
        self.status.send_if_modified(|current| {
            let before = current.clone();
            change(current);
            status::update(&self.pod, current, Timestamp::now());
            *current != before
        });
    }

    pub(super) fn container<T>(&self, name: &str, look: impl FnOnce(&ContainerStatus) -> T) -> Option<T> {
        self.read_status(|current| status::container(current, name).map(look))
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

    /// Waits until `wanted` holds for the status.
    pub(super) async fn until(&self, wanted: impl FnMut(&PodStatus) -> bool) {
        // The sender outlives this receiver.
        let _ = self.status.subscribe().wait_for(wanted).await;
    }
}
