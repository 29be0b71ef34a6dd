//! Mounting a pod's volumes, and starting its containers.

use std::time::Duration;

use k8s_openapi::api::core::v1::Container;
use tokio_util::sync::CancellationToken;

use super::Worker;
use crate::kubelet::{
    event::{EventDraft, container_field},
    restart::{Backoff, BackoffOptions},
    runtime::{Exit, Prepared, Role, Run},
    status::ContainerState,
};

impl Worker {
    /// Until every volume is there. False when the pod was asked to end before.
    pub(super) async fn mount(&self, asked: &CancellationToken) -> bool {
        let mut backoff =
            Backoff::new(BackoffOptions { base: Duration::from_millis(500), max: Duration::from_secs(122) });
        tokio::select! {
            () = asked.cancelled() => false,
            () = async {
                while let Err(message) = self.runtime.mount(self).await {
                    self.journal.write(EventDraft::warning("FailedMount", message));
                    tokio::time::sleep(backoff.advance()).await;
                }
            } => true,
        }
    }

    /// Starts the container's run number `restarts`, however long it takes to get everything it needs. `None` when it
    /// was asked to end before it began; an `Exit` when it could not be started.
    pub(super) async fn start(
        &self,
        container: &Container,
        role: Role,
        restarts: u32,
        asked: &CancellationToken,
    ) -> Option<Result<Run, Exit>> {
        let prepared = tokio::select! {
            () = asked.cancelled() => return None,
            prepared = async {
                self.pull(container, role).await;
                self.configure(container, role).await
            } => prepared,
        };
        // Nothing is awaited from here on: a run that has begun must not get lost.
        let name = &container.name;
        let field = container_field(name, role != Role::Main);
        let say = |draft: EventDraft| self.journal.write(draft.of_field(&field));
        say(EventDraft::normal("Created", format!("Created container: {name}")));
        let now = self.node.clock.now();
        let begun = self.runtime.start(self.uid(), container, role, &prepared, restarts, now);
        self.state.change_container(name, |record| {
            record.restarts = restarts;
            record.image_id.clone_from(&record.image);
            record.container_id =
                Some(format!("{}://{}-{name}-{restarts}", self.runtime.scheme(), self.uid()));
            if begun.is_ok() {
                record.state = ContainerState::Running { since: now };
            }
        });
        match &begun {
            Ok(_) => say(EventDraft::normal("Started", format!("Started container {name}"))),
            Err(exit) => say(EventDraft::warning("Failed", format!("Error: {}", exit.message))),
        }
        Some(begun)
    }

    /// Until everything that the container refers to is there.
    async fn configure(&self, container: &Container, role: Role) -> Prepared {
        let name = &container.name;
        loop {
            match self.runtime.prepare(self, container).await {
                Ok(prepared) => return prepared,
                Err(message) => {
                    let event = EventDraft::warning("Failed", format!("Error: {message}"));
                    self.journal.write(event.of_field(&container_field(name, role != Role::Main)));
                    self.state.waits(name, "CreateContainerConfigError", message);
                    tokio::time::sleep(self.node.retry).await;
                }
            }
        }
    }
}
