//! A running container: probes, and its end.

use std::{convert::Infallible, net::SocketAddr, time::Duration};

use k8s_openapi::api::core::v1::{Container, LifecycleHandler, Probe};
use tokio_util::sync::CancellationToken;

use super::{Worker, life::Stop};
use crate::kubelet::{
    event::{Happening, container_field},
    probe::{Schedule, Tally, Target, Verdict, check, exec, first_port, port_answers},
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
            self.journal.write(Happening::normal("Killing", message).of_field(&field));
        };
        tokio::select! {
            biased;
            exit = run.wait() => exit,
            () = asked.cancelled() => {
                killing(format!("Stopping container {name}"));
                self.board.change_container(name, |container| container.ready = false);
                self.before_stop(container, stop).await;
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
        if let Some(complaint) = self.after_start(container, &target).await {
            return complaint;
        }
        if let Some(probe) = &container.startup_probe {
            let unhealthy =
                self.ask(container, &target, probe, "Startup", |verdict| verdict != Verdict::Undecided).await;
            if unhealthy == Verdict::Unhealthy {
                return format!("Container {} failed startup probe, will be restarted", container.name);
            }
        }
        self.board.change_container(&container.name, |container| container.started = true);
        tokio::select! {
            never = self.watch_readiness(container, &target) => match never {},
            complaint = self.watch_liveness(container, &target) => complaint,
        }
    }

    async fn watch_readiness(&self, container: &Container, target: &Target) -> Infallible {
        let ready = |ready| self.board.change_container(&container.name, |container| container.ready = ready);
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
        let mut tally = Tally::new(&schedule);
        tokio::time::sleep(schedule.initial_delay).await;
        loop {
            let answer = check(&schedule, target).await;
            if let Err(reason) = &answer {
                let told = Happening::warning("Unhealthy", format!("{kind} probe failed: {reason}"));
                self.journal.write(told.of_field(&container_field(&container.name, false)));
            }
            let verdict = tally.add(answer.is_ok());
            if enough(verdict) {
                return verdict;
            }
            tokio::time::sleep(schedule.period).await;
        }
    }

    /// A simulated container is ready after a time, or complains once a period.
    async fn seem_ready(&self, container: &Container, ready_after: Duration) -> Infallible {
        self.board.change_container(&container.name, |container| container.started = true);
        self.sleep(ready_after).await;
        while let Some(complaint) = self.runtime.unready(&self.board, container) {
            let told = Happening::warning("Unhealthy", format!("Readiness probe failed: {complaint}"));
            self.journal.write(told.of_field(&container_field(&container.name, false)));
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        self.board.change_container(&container.name, |container| container.ready = true);
        std::future::pending().await
    }

    /// The `postStart` hook; why the container must be restarted, if it failed.
    async fn after_start(&self, container: &Container, target: &Target) -> Option<String> {
        let hook = container.lifecycle.as_ref()?.post_start.as_ref()?;
        let error = exec(command(hook)?, target).await.err()?;
        let told = Happening::warning("FailedPostStartHook", format!("PostStartHook failed: {error}"));
        self.journal.write(told.of_field(&container_field(&container.name, false)));
        Some(format!("FailedPostStartHook: container {} will be restarted", container.name))
    }

    /// The `preStop` hook, within the grace period.
    async fn before_stop(&self, container: &Container, stop: &Stop) {
        let hook = container.lifecycle.as_ref().and_then(|lifecycle| lifecycle.pre_stop.as_ref());
        let Some(command) = hook.and_then(command) else { return };
        if let Health::Asked(target) = self.runtime.health(self, container).await {
            tokio::select! {
                result = exec(command, &target) => if let Err(error) = result {
                    let told = Happening::warning("FailedPreStopHook", format!("PreStopHook failed: {error}"));
                    self.journal.write(told.of_field(&container_field(&container.name, false)));
                },
                () = stop.grace_is_over() => {}
            }
        }
    }
}

fn command(hook: &LifecycleHandler) -> Option<&[String]> {
    hook.exec.as_ref()?.command.as_deref()
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
