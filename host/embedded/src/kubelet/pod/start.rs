//! Starting a container.

use k8s_openapi::api::core::v1::Container;
use tokio_util::sync::CancellationToken;

use super::Worker;
use crate::kubelet::{
    event::{Happening, container_field},
    runtime::{Exit, Prepared, Role, Run},
    status::ContainerState,
};

impl Worker {
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
        let say = |happening: Happening| self.journal.write(happening.of_field(&field));
        say(Happening::normal("Created", format!("Created container: {name}")));
        let now = self.node.clock.now();
        let begun = self.runtime.start(self.uid(), container, role, &prepared, restarts, now);
        self.board.change_container(name, |record| {
            record.restarts = restarts;
            record.image_id.clone_from(&record.image);
            record.container_id =
                Some(format!("{}://{}-{name}-{restarts}", self.runtime.scheme(), self.uid()));
            if begun.is_ok() {
                record.state = ContainerState::Running { since: now };
            }
        });
        match &begun {
            Ok(_) => say(Happening::normal("Started", format!("Started container {name}"))),
            Err(exit) => say(Happening::warning("Failed", format!("Error: {}", exit.message))),
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
                    let told = Happening::warning("Failed", format!("Error: {message}"));
                    self.journal.write(told.of_field(&container_field(name, role != Role::Main)));
                    self.board.waits(name, "CreateContainerConfigError", message);
                    tokio::time::sleep(self.node.retry).await;
                }
            }
        }
    }
}
