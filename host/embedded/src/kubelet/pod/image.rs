//! Getting a container's image, with the events and waiting reasons of a kubelet.

use std::time::Duration;

use k8s_openapi::api::core::v1::Container;

use super::Worker;
use crate::kubelet::{
    event::{EventDraft, container_field},
    restart::Backoff,
    runtime::{ImageState, Role},
};

/// How long `ErrImagePull` is shown before it becomes `ImagePullBackOff`.
const ERROR_SHOWN: Duration = Duration::from_secs(2);

impl Worker {
    /// Until the image is there.
    pub(super) async fn pull(&self, container: &Container, role: Role) {
        let image = container.image.as_deref().unwrap_or_default();
        let field = container_field(&container.name, role != Role::Main);
        let say = |draft: EventDraft| self.journal.write(draft.of_field(&field));
        let pulling = || say(EventDraft::normal("Pulling", format!("Pulling image {image:?}")));
        let mut backoff = Backoff::new(self.node.backoff);
        loop {
            match self.runtime.image(container) {
                ImageState::Present => {
                    say(EventDraft::normal(
                        "Pulled",
                        format!("Container image {image:?} already present on machine"),
                    ));
                    return;
                }
                ImageState::Pulls { after } => {
                    pulling();
                    self.sleep(after).await;
                    let took = format!("{after:?} ({after:?} including waiting)");
                    say(EventDraft::normal(
                        "Pulled",
                        format!("Successfully pulled image {image:?} in {took}"),
                    ));
                    return;
                }
                ImageState::Unavailable { after, message } => {
                    pulling();
                    self.sleep(after).await;
                    say(EventDraft::warning("Failed", format!("Failed to pull image {image:?}: {message}")));
                    say(EventDraft::warning("Failed", "Error: ErrImagePull"));
                    self.state.waits(&container.name, "ErrImagePull", message.clone());
                    let wait = backoff.advance();
                    let shown = ERROR_SHOWN.min(wait / 2);
                    self.sleep(shown).await;
                    say(EventDraft::normal("BackOff", format!("Back-off pulling image {image:?}")));
                    say(EventDraft::warning("Failed", "Error: ImagePullBackOff"));
                    let message = format!("Back-off pulling image {image:?}: ErrImagePull: {message}");
                    self.state.waits(&container.name, "ImagePullBackOff", message);
                    self.sleep(wait.saturating_sub(shown)).await;
                }
                ImageState::Invalid => {
                    let message = format!(
                        "Failed to apply default image tag {image:?}: couldn't parse image name {image:?}: invalid \
                         reference format"
                    );
                    say(EventDraft::warning("InspectFailed", message.clone()));
                    say(EventDraft::warning("Failed", "Error: InvalidImageName"));
                    self.state.waits(&container.name, "InvalidImageName", message);
                    self.sleep(self.node.retry).await;
                }
            }
        }
    }

    /// A sleep that is none when there is nothing to wait for, so that what follows becomes visible together with what
    /// was before.
    pub(super) async fn sleep(&self, duration: Duration) {
        if !duration.is_zero() {
            tokio::time::sleep(duration).await;
        }
    }
}
