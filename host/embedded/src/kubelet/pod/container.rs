//! The life of one container: its start, the watch until it ends, and its restarts.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStateTerminated};

use super::{Stop, Worker};
use crate::kubelet::event::EventDraft;
use crate::kubelet::exit::Exit;
use crate::kubelet::probe::{self, Probe};
use crate::kubelet::restart::{Backoff, RestartPolicy};
use crate::kubelet::runtime::Run;
use crate::kubelet::status::{self, end_of, running_since};

/// The period of the attempts to connect to a port that stands for a readiness probe. A connection on loopback is
/// cheap.
const PORT_PERIOD: Duration = Duration::from_millis(200);
/// The period of the events about a simulated container that is not ready.
const COMPLAINT_PERIOD: Duration = Duration::from_secs(10);

impl Worker {
    /// Keeps a container running until it has ended for good. Returns its exit code, or `None` if the pod was stopped
    /// before the container could be started.
    pub(super) async fn live_container(
        &self,
        container: &Container,
        init: bool,
        resumed: Option<Run>,
        stop: &Stop,
    ) -> Option<i32> {
        let name = &container.name;
        let policy = RestartPolicy::parse(self.spec().restart_policy.as_deref());
        let policy = if init { policy.for_init() } else { policy };
        let mut restarts = self.container(name, |known| known.restart_count).unwrap_or_default();
        let mut backoff = Backoff::after_restarts(self.node.backoff, restarts);
        let mut next = resumed;
        loop {
            if next.is_none() && self.end_of(name).is_none() {
                match self.start(container, init, restarts, stop).await? {
                    Ok(run) => next = Some(run),
                    Err(exit) => self.record_end(name, init, exit),
                }
            }
            if let Some(run) = next.take() {
                let mut exit = self.attend(container, init, run, stop).await;
                let policy = container.termination_message_policy.as_deref();
                if exit.code != 0 && exit.message.is_empty() && policy == Some("FallbackToLogsOnError") {
                    exit.message = self.runtime.end_of_log(name, restarts).unwrap_or_default();
                }
                self.record_end(name, init, exit);
            }
            let end = self.end_of(name)?;
            if stop.terminate.is_cancelled() || !policy.restarts(end.exit_code) {
                return Some(end.exit_code);
            }
            if let (Some(start), Some(finish)) = (&end.started_at, &end.finished_at) {
                backoff.ran_for(Duration::try_from(finish.0.duration_since(start.0)).unwrap_or_default());
            }
            let code = end.exit_code;
            if !self.back_off(container, init, backoff.advance(), end, stop).await {
                return Some(code);
            }
            restarts += 1;
        }
    }

    /// Returns the end of the newest run if the container does not run.
    fn end_of(&self, name: &str) -> Option<ContainerStateTerminated> {
        self.container(name, |container| end_of(container).cloned())?
    }

    fn record_end(&self, name: &str, init: bool, exit: Exit) {
        let now = Timestamp::now();
        self.change_container(name, |container| {
            container.ready = init && exit.code == 0;
            container.started = Some(false);
            let started_at = running_since(container).cloned();
            let end = exit.terminated(started_at, now, container.container_id.clone());
            container.state = Some(status::terminated(end));
        });
    }

    /// Waits before the next run. Returns false if the container has to end instead.
    async fn back_off(
        &self,
        container: &Container,
        init: bool,
        wait: Duration,
        end: ContainerStateTerminated,
        stop: &Stop,
    ) -> bool {
        let name = &container.name;
        let reason = if wait.is_zero() { "ContainerCreating" } else { "CrashLoopBackOff" };
        let mut message = String::new();
        if !wait.is_zero() {
            let pod = format!("{}_{}({})", self.name(), self.namespace(), self.uid());
            message = format!("back-off {wait:?} restarting failed container={name} pod={pod}");
            let text = format!("Back-off restarting failed container {name} in pod {pod}");
            self.report(EventDraft::warning("BackOff", text).of_container(name, init));
        }
        self.change_container(name, |container| {
            container.last_state = Some(status::terminated(end));
            container.state = Some(status::waiting(reason, message));
            container.ready = false;
        });
        tokio::select! {
            () = self.sleep(wait) => true,
            () = stop.terminate.cancelled() => false,
        }
    }

    /// Watches a run until it has ended by itself or because of `stop`.
    async fn attend(&self, container: &Container, init: bool, mut run: Run, stop: &Stop) -> Exit {
        let name = &container.name;
        tokio::select! {
            biased;
            exit = run.wait() => return exit,
            () = stop.terminate.cancelled() => {}
            never = self.watch_readiness(container, init) => match never {},
        }
        self.report(
            EventDraft::normal("Killing", format!("Stopping container {name}")).of_container(name, init),
        );
        self.change_container(name, |container| container.ready = false);
        run.terminate();
        tokio::select! {
            biased;
            () = stop.kill.cancelled() => {}
            exit = run.wait() => return exit,
        }
        run.kill();
        run.wait().await
    }

    /// Keeps `started` and `ready` in the container's status up to date.
    async fn watch_readiness(&self, container: &Container, init: bool) -> Infallible {
        if init {
            return std::future::pending().await;
        }
        let started = || {
            self.change_container(&container.name, |container| container.started = Some(true));
        };
        let ready = |ready| self.change_container(&container.name, |container| container.ready = ready);
        if let Some(simulated) = self.runtime.simulated() {
            started();
            self.sleep(simulated.delays.ready).await;
            while let Some(complaint) = simulated.unready(container, self.pod_ip()) {
                self.report_unhealthy(container, "Readiness", &complaint);
                tokio::time::sleep(COMPLAINT_PERIOD).await;
            }
            ready(true);
            return std::future::pending().await;
        }
        if let Some(probe) = Probe::from_container(container, container.startup_probe.as_ref()) {
            self.ask(container, "Startup", &probe, |healthy| healthy).await;
        }
        started();
        if let Some(probe) = Probe::from_container(container, container.readiness_probe.as_ref()) {
            let keep_asking = |healthy| {
                ready(healthy);
                false
            };
            self.ask(container, "Readiness", &probe, keep_asking).await;
        } else if let Some(port) = probe::first_port(container) {
            // A kubelet would report the container as ready at once, but only the port shows when a lab answers.
            while !probe::port_answers(SocketAddr::new(self.pod_ip(), port)).await {
                tokio::time::sleep(PORT_PERIOD).await;
            }
        }
        ready(true);
        std::future::pending().await
    }

    /// Repeats the probe until `enough` holds for a verdict. A startup probe that fails too often does not end the
    /// container.
    async fn ask(&self, container: &Container, kind: &str, probe: &Probe, enough: impl Fn(bool) -> bool) {
        let mut streak = probe.streak();
        tokio::time::sleep(probe.initial_delay).await;
        loop {
            let answer = probe.ask(self.pod_ip()).await;
            if let Err(complaint) = &answer {
                self.report_unhealthy(container, kind, complaint);
            }
            if streak.add(answer.is_ok()).is_some_and(&enough) {
                return;
            }
            tokio::time::sleep(probe.period).await;
        }
    }

    fn report_unhealthy(&self, container: &Container, kind: &str, complaint: &str) {
        let event = EventDraft::warning("Unhealthy", format!("{kind} probe failed: {complaint}"));
        self.report(event.of_container(&container.name, false));
    }

    /// Sleeps, but does not even yield if the duration is zero, so that later changes of the status become visible
    /// together with earlier ones.
    pub(super) async fn sleep(&self, duration: Duration) {
        if !duration.is_zero() {
            tokio::time::sleep(duration).await;
        }
    }
}
