//! One container: start, run, end, and again.

use std::time::Duration;

use k8s_openapi::api::core::v1::Container;
use tokio_util::sync::CancellationToken;

use super::{Worker, life::Stop};
use crate::kubelet::{
    event::{EventDraft, container_field},
    restart::{Backoff, RestartPolicy},
    runtime::{Exit, Role, Run},
    status::{ContainerState, Termination},
};

impl Worker {
    /// Until the container has ended for good.
    pub(super) async fn live_container(
        &self,
        container: &Container,
        role: Role,
        resumed: Option<Run>,
        asked: &CancellationToken,
        stop: &Stop,
    ) {
        let name = &container.name;
        let policy = self.restart_policy(role);
        let mut restarts = self.state.container(name, |known| known.restarts).unwrap_or_default();
        let mut backoff = Backoff::after_restarts(self.node.backoff, restarts);
        let mut next = resumed;
        loop {
            let ended = self.ended(name);
            if next.is_none() && ended.is_none() {
                match self.start(container, role, restarts, asked).await {
                    None => return,
                    Some(Ok(run)) => next = Some(run),
                    Some(Err(exit)) => self.record_end(name, role, exit),
                }
            }
            if let Some(run) = next.take() {
                let exit = self.attend(container, role, run, asked, stop).await;
                self.record_end(name, role, exit);
            }
            let Some(end) = self.ended(name) else { return };
            if asked.is_cancelled() || !policy.restarts(end.exit_code) {
                if role == Role::Init && end.exit_code != 0 {
                    self.state.change(|record| record.given_up = true);
                }
                return;
            }
            let ran = end
                .started_at
                .and_then(|start| Duration::try_from(end.finished_at.duration_since(start)).ok());
            backoff.ran_for(ran.unwrap_or_default());
            if !self.back_off(container, role, backoff.advance(), end, asked).await {
                return;
            }
            restarts += 1;
        }
    }

    /// The end of the newest run, when the container does not run.
    fn ended(&self, name: &str) -> Option<Termination> {
        self.state.container(name, |container| match &container.state {
            ContainerState::Terminated(end) => Some(end.clone()),
            _ => None,
        })?
    }

    fn restart_policy(&self, role: Role) -> RestartPolicy {
        let policy = RestartPolicy::parse(self.spec().restart_policy.as_deref());
        match role {
            Role::Main => policy,
            Role::Init => policy.for_init(),
            Role::Sidecar => RestartPolicy::Always,
        }
    }

    fn record_end(&self, name: &str, role: Role, exit: Exit) {
        let now = self.node.clock.now();
        self.state.change_container(name, |container| {
            let started_at = match container.state {
                ContainerState::Running { since } => Some(since),
                _ => None,
            };
            container.ready = role == Role::Init && exit.code == 0;
            container.started = false;
            container.state = ContainerState::Terminated(Termination {
                exit_code: exit.code,
                reason: exit.reason.to_owned(),
                message: exit.message,
                started_at,
                finished_at: now,
                container_id: container.container_id.clone(),
            });
        });
    }

    /// Waits before the next run. False when the container was asked to end instead.
    async fn back_off(
        &self,
        container: &Container,
        role: Role,
        wait: Duration,
        end: Termination,
        asked: &CancellationToken,
    ) -> bool {
        let name = &container.name;
        let reason = if wait.is_zero() { "ContainerCreating" } else { "CrashLoopBackOff" };
        let mut message = String::new();
        if !wait.is_zero() {
            let pod = format!("{}_{}({})", self.name(), self.namespace(), self.uid());
            message = format!("back-off {} restarting failed container={name} pod={pod}", short(wait));
            let text = format!("Back-off restarting failed container {name} in pod {pod}");
            self.journal.write(
                EventDraft::warning("BackOff", text).of_field(&container_field(name, role != Role::Main)),
            );
        }
        self.state.change_container(name, |container| {
            container.last = Some(end);
            container.state = ContainerState::waiting(reason, message);
            container.ready = false;
        });
        tokio::select! {
            () = self.sleep(wait) => true,
            () = asked.cancelled() => false,
        }
    }
}

/// `1m20s`, as Go prints durations.
fn short(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 60, seconds % 60) {
        (0, 0) => format!("{}ms", duration.as_millis()),
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_go_does() {
        for (milliseconds, expect) in [(500, "500ms"), (10_000, "10s"), (80_000, "1m20s"), (300_000, "5m0s")]
        {
            assert_eq!(short(Duration::from_millis(milliseconds)), expect);
        }
    }
}
