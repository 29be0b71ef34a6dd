//! Mounts a pod's volumes, and starts its containers with the events and waiting reasons of a kubelet.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Container;

use super::{Stop, Worker};
use crate::kubelet::event::EventDraft;
use crate::kubelet::exit::Exit;
use crate::kubelet::image::ImageState;
use crate::kubelet::process::Launch;
use crate::kubelet::restart::{Backoff, BackoffOptions};
use crate::kubelet::runtime::Run;
use crate::kubelet::status;

/// The time for which `ErrImagePull` is shown before it becomes `ImagePullBackOff`.
const ERROR_SHOWN: Duration = Duration::from_secs(2);

impl Worker {
    /// Waits until every volume is mounted. Returns false if the pod has to end before.
    pub(super) async fn mount(&self, stop: &Stop) -> bool {
        let mut backoff =
            Backoff::new(BackoffOptions { base: Duration::from_millis(500), max: Duration::from_secs(122) });
        let mounted = async {
            while let Err(message) = self.runtime.mount(&self.context()).await {
                self.report(EventDraft::warning("FailedMount", message));
                tokio::time::sleep(backoff.advance()).await;
            }
        };
        tokio::select! {
            () = stop.terminate.cancelled() => false,
            () = mounted => true,
        }
    }

    /// Starts the container's run number `restarts`. Waits without a limit for the image and the configuration. Returns
    /// `None` if the container has to end before the start, and an `Exit` if it could not be started.
    pub(super) async fn start(
        &self,
        container: &Container,
        init: bool,
        restarts: i32,
        stop: &Stop,
    ) -> Option<Result<Run, Exit>> {
        let prepared = async {
            self.pull(container, init).await;
            self.configure(container, init).await
        };
        let launch = tokio::select! {
            () = stop.terminate.cancelled() => return None,
            launch = prepared => launch,
        };
        // There is no `await` from here on: a run that has begun must not get lost.
        let (name, uid, now) = (&container.name, self.uid(), Timestamp::now());
        let report = |draft: EventDraft| self.report(draft.of_container(name, init));
        report(EventDraft::normal("Created", "Container created".to_owned()));
        let mark = format!("{uid}/{name}/{restarts}/");
        let begun = self.runtime.start(container, init, launch.as_ref(), &mark, restarts, now);
        self.change_container(name, |known| {
            known.restart_count = restarts;
            known.image_id.clone_from(&known.image);
            known.container_id = Some(format!("embedded://{uid}-{name}-{restarts}"));
            if begun.is_ok() {
                known.state = Some(status::running(now));
            }
        });
        match &begun {
            Ok(_) => report(EventDraft::normal("Started", "Container started".to_owned())),
            Err(exit) => report(EventDraft::warning("Failed", format!("Error: {}", exit.message))),
        }
        Some(begun)
    }

    /// Waits until all objects that the container refers to exist.
    async fn configure(&self, container: &Container, init: bool) -> Option<Launch> {
        let name = &container.name;
        loop {
            match self.runtime.prepare(&self.context(), container).await {
                Ok(launch) => return launch,
                Err(message) => {
                    let event = EventDraft::warning("Failed", format!("Error: {message}"));
                    self.report(event.of_container(name, init));
                    self.set_waiting(name, "CreateContainerConfigError", message);
                    tokio::time::sleep(self.node.retry).await;
                }
            }
        }
    }

    /// Waits until the image is present.
    async fn pull(&self, container: &Container, init: bool) {
        let name = &container.name;
        let image = container.image.as_deref().unwrap_or_default();
        let normal = |reason: &str, message: String| {
            self.report(EventDraft::normal(reason, message).of_container(name, init));
        };
        let failed = |reason: &str, message: String| {
            self.report(EventDraft::warning(reason, message).of_container(name, init));
        };
        let mut backoff = Backoff::new(self.node.backoff);
        loop {
            match self.runtime.image(container) {
                ImageState::Present => {
                    self.node.has_image(image);
                    return normal(
                        "Pulled",
                        format!(
                            "Container image {image:?} already present on machine and can be accessed by the pod"
                        ),
                    );
                }
                ImageState::Pulls { after } => {
                    normal("Pulling", format!("Pulling image {image:?}"));
                    self.sleep(after).await;
                    self.node.has_image(image);
                    let took = format!("{after:?} ({after:?} including waiting)");
                    return normal("Pulled", format!("Successfully pulled image {image:?} in {took}"));
                }
                ImageState::Unavailable { after, message } => {
                    normal("Pulling", format!("Pulling image {image:?}"));
                    self.sleep(after).await;
                    failed("Failed", format!("Failed to pull image {image:?}: {message}"));
                    failed("Failed", "Error: ErrImagePull".to_owned());
                    self.set_waiting(name, "ErrImagePull", message.clone());
                    let wait = backoff.advance();
                    let shown = ERROR_SHOWN.min(wait / 2);
                    self.sleep(shown).await;
                    normal("BackOff", format!("Back-off pulling image {image:?}"));
                    failed("Failed", "Error: ImagePullBackOff".to_owned());
                    let message = format!("Back-off pulling image {image:?}: ErrImagePull: {message}");
                    self.set_waiting(name, "ImagePullBackOff", message);
                    self.sleep(wait.saturating_sub(shown)).await;
                }
                ImageState::Invalid => {
                    let message = format!("couldn't parse image name {image:?}: invalid reference format");
                    failed("InspectFailed", message.clone());
                    failed("Failed", "Error: InvalidImageName".to_owned());
                    self.set_waiting(name, "InvalidImageName", message);
                    self.sleep(self.node.retry).await;
                }
            }
        }
    }
}
