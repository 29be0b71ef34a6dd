//! A running container: probes, and its end.

use std::{convert::Infallible, net::SocketAddr, time::Duration};

use k8s_openapi::api::core::v1::{Container, Probe};
use tokio_util::sync::CancellationToken;

use super::{Worker, life::Stop};
use crate::kubelet::{
    event::{EventDraft, container_field},
    probe::{Schedule, Streak, Target, Verdict, check, first_port, port_answers},
    runtime::{Exit, Health, Role, Run},
};

/// How often a port is tried that stands for a readiness probe. A machine's own loopback is cheap to ask.
const PORT_PERIOD: Duration = Duration::from_millis(200);

impl Worker {
    /// Until the run has ended: by itself, because it was unhealthy, or because it was asked to.
    pub(super) async fn attend(
        &self,
        container: &Container,
        role: Role,
        mut run: Run,
        asked: &CancellationToken,
        stop: &Stop,
    ) -> Exit {
        let name = &container.name;
        let own_grace =
            self.spec().termination_grace_period_seconds.and_then(|s| u64::try_from(s).ok()).unwrap_or(30);
        let killing = |message: String| {
            let field = container_field(name, role != Role::Main);
            self.journal.write(EventDraft::normal("Killing", message).of_field(&field));
        };
        tokio::select! {
            biased;
            exit = run.wait() => exit,
            () = asked.cancelled() => {
                killing(format!("Stopping container {name}"));
                self.state.change_container(name, |container| container.ready = false);
                end(&mut run, stop).await
            }
            complaint = self.watch_health(container, role) => {
                killing(complaint);
                let own = Stop::within(Duration::from_secs(own_grace));
                tokio::select! {
                    exit = end(&mut run, &own) => exit,
                    () = asked.cancelled() => end(&mut run, stop).await,
                }
            }
        }
    }

    /// Keeps `started` and `ready` up to date. Returns why the container must be restarted.
    async fn watch_health(&self, container: &Container, role: Role) -> String {
        if role == Role::Init {
            return std::future::pending().await;
        }
        let target = match self.runtime.health(self, container).await {
            Health::Asked(target) => target,
            Health::Simulated { ready_after } => match self.seem_ready(container, ready_after).await {},
        };
        if let Some(probe) = &container.startup_probe {
            let unhealthy =
                self.ask(container, &target, probe, "Startup", |verdict| verdict != Verdict::Undecided).await;
            if unhealthy == Verdict::Unhealthy {
                return format!("Container {} failed startup probe, will be restarted", container.name);
            }
        }
        self.state.change_container(&container.name, |container| container.started = true);
        tokio::select! {
            never = self.watch_readiness(container, &target) => match never {},
            complaint = self.watch_liveness(container, &target) => complaint,
        }
    }

    async fn watch_readiness(&self, container: &Container, target: &Target) -> Infallible {
        let ready = |ready| self.state.change_container(&container.name, |container| container.ready = ready);
        if let Some(probe) = &container.readiness_probe {
            self.ask(container, target, probe, "Readiness", |verdict| {
                match verdict {
                    Verdict::Healthy => ready(true),
                    Verdict::Unhealthy => ready(false),
                    Verdict::Undecided => {}
                }
                false
            })
            .await;
        } else {
            // Deviation: a real kubelet would call it ready at once. Here nothing but the port tells when a lab answers.
            if let Some(port) = first_port(container) {
                while !port_answers(SocketAddr::new(target.pod_ip, port)).await {
                    tokio::time::sleep(PORT_PERIOD).await;
                }
            }
            ready(true);
        }
        std::future::pending().await
    }

    async fn watch_liveness(&self, container: &Container, target: &Target) -> String {
        let Some(probe) = &container.liveness_probe else { return std::future::pending().await };
        self.ask(container, target, probe, "Liveness", |verdict| verdict == Verdict::Unhealthy).await;
        format!("Container {} failed liveness probe, will be restarted", container.name)
    }

    /// Asks again and again, until a verdict is enough.
    async fn ask(
        &self,
        container: &Container,
        target: &Target,
        probe: &Probe,
        kind: &str,
        enough: impl Fn(Verdict) -> bool,
    ) -> Verdict {
        let schedule = Schedule::of(container, probe);
        let mut streak = Streak::new(&schedule);
        tokio::time::sleep(schedule.initial_delay).await;
        loop {
            let answer = check(&schedule, target).await;
            if let Err(reason) = &answer {
                let event = EventDraft::warning("Unhealthy", format!("{kind} probe failed: {reason}"));
                self.journal.write(event.of_field(&container_field(&container.name, false)));
            }
            let verdict = streak.add(answer.is_ok());
            if enough(verdict) {
                return verdict;
            }
            tokio::time::sleep(schedule.period).await;
        }
    }

    /// A simulated container is ready after a time, or complains once a period.
    async fn seem_ready(&self, container: &Container, ready_after: Duration) -> Infallible {
        self.state.change_container(&container.name, |container| container.started = true);
        self.sleep(ready_after).await;
        while let Some(complaint) = self.runtime.unready(&self.state, container) {
            let event = EventDraft::warning("Unhealthy", format!("Readiness probe failed: {complaint}"));
            self.journal.write(event.of_field(&container_field(&container.name, false)));
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        self.state.change_container(&container.name, |container| container.ready = true);
        std::future::pending().await
    }
}

/// TERM, then KILL when the grace period is over.
async fn end(run: &mut Run, stop: &Stop) -> Exit {
    run.terminate();
    tokio::select! {
        biased;
        () = stop.grace_is_over() => {}
        exit = run.wait() => return exit,
    }
    run.kill();
    run.wait().await
}
