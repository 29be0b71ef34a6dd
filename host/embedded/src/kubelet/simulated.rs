//! The simulated runtime: nothing runs, but everything looks as if it did. The annotations of a pod set the durations
//! of its stages, and its faults.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Container, Pod};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::SimulatedOptions;
use super::exit::Exit;
use super::image::ImageState;
use super::probe::first_port;
use super::status::spec;

const PREFIX: &str = "simulated.kubelet/";

/// A fault of a pod, by the value of its annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Fault {
    PullFailure,
    InvalidImage,
    ConfigError,
    CrashLoop,
    Oom,
    Exit,
    NotReady,
    Evicted,
}

/// A simulated pod, with the faults and delays in its annotations.
#[derive(Debug)]
pub(crate) struct SimulatedPod {
    pub(crate) delays: SimulatedOptions,
    fault: Option<Fault>,
    /// The time that a container (or the pod) runs before the fault.
    after: Duration,
    /// The number of times that the fault happens before the container succeeds.
    times: u32,
    /// The number of times that the fault has happened.
    happened: AtomicU32,
    /// The container that faults of containers affect: the first.
    victim: Option<String>,
    /// The mistake in an annotation. A pod with a mistake does not run.
    pub(crate) mistake: Option<String>,
}

impl SimulatedPod {
    pub(crate) fn from_pod(pod: &Pod, delays: SimulatedOptions) -> Self {
        let mut simulated = Self {
            delays,
            fault: None,
            after: Duration::ZERO,
            times: u32::MAX,
            happened: AtomicU32::new(0),
            victim: spec(pod).containers.first().map(|container| container.name.clone()),
            mistake: None,
        };
        for (name, value) in pod.metadata.annotations.iter().flatten() {
            if let Some(Err(why)) = name.strip_prefix(PREFIX).map(|key| simulated.set(key, value)) {
                simulated.mistake = Some(format!("annotation {name}: {value:?}: {why}"));
            }
        }
        simulated
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let duration = || {
            let parsed = value.parse::<SignedDuration>().ok().and_then(|d| Duration::try_from(d).ok());
            parsed.ok_or("a duration is needed, such as 500ms, 2s or 1m")
        };
        match key {
            "schedule-delay" => self.delays.schedule = duration()?,
            "pull-delay" => self.delays.pull = duration()?,
            "init-delay" => self.delays.init = duration()?,
            "ready-delay" => self.delays.ready = duration()?,
            "stop-delay" => self.delays.stop = duration()?,
            "fault-after" => self.after = duration()?,
            "fault-times" => self.times = value.parse().map_err(|_| "a number is needed")?,
            "fault" => {
                self.fault = serde_json::from_value(json!(value)).map_err(|error| error.to_string())?;
            }
            _ => return Err("the simulated kubelet knows no such annotation".to_owned()),
        }
        Ok(())
    }

    /// Returns the time until the pod's eviction, if its fault is one.
    pub(crate) fn evicted_after(&self) -> Option<Duration> {
        (self.fault == Some(Fault::Evicted)).then_some(self.after)
    }

    /// Returns whether the fault happens to the container now, and counts it.
    fn happens(&self, fault: Fault, container: &Container) -> bool {
        self.fault == Some(fault)
            && self.victim.as_ref() == Some(&container.name)
            && self.happened.fetch_add(1, Ordering::Relaxed) < self.times
    }

    pub(crate) fn image(&self, container: &Container) -> ImageState {
        let image = container.image.as_deref().unwrap_or_default();
        if self.happens(Fault::InvalidImage, container) {
            ImageState::Invalid
        } else if self.happens(Fault::PullFailure, container) {
            let message = format!(
                "rpc error: code = NotFound desc = failed to pull and unpack image {image:?}: failed to resolve \
                 image: {image}: not found"
            );
            ImageState::Unavailable { after: self.delays.pull, message }
        } else if self.delays.pull.is_zero() {
            ImageState::Present
        } else {
            ImageState::Pulls { after: self.delays.pull }
        }
    }

    /// Fails as for a missing secret if the fault is `ConfigError` and happens now.
    pub(crate) fn configure(&self, container: &Container, pod: &Pod) -> Result<(), String> {
        let secret = pod.metadata.name.as_deref().unwrap_or("missing");
        if self.happens(Fault::ConfigError, container) {
            return Err(format!("secret {secret:?} not found"));
        }
        Ok(())
    }

    pub(crate) fn start(&self, container: &Container, init: bool) -> SimulatedRun {
        let after = |delay: Duration, exit| Some((Instant::now() + delay, exit));
        let end = if init {
            after(self.delays.init, Exit::of_code(0))
        } else if self.happens(Fault::Oom, container) {
            after(self.after, Exit { reason: "OOMKilled", ..Exit::of_code(137) })
        } else if self.happens(Fault::CrashLoop, container) || self.happens(Fault::Exit, container) {
            after(self.after, Exit::of_code(1))
        } else {
            None
        };
        SimulatedRun { end, ..self.resume() }
    }

    /// Returns the current complaint of a readiness probe, if there is one.
    pub(crate) fn unready(&self, container: &Container, pod_ip: IpAddr) -> Option<String> {
        let port = first_port(container).unwrap_or(8888);
        self.happens(Fault::NotReady, container).then(|| {
            format!("Get \"http://{pod_ip}:{port}/\": dial tcp {pod_ip}:{port}: connect: connection refused")
        })
    }

    /// Continues the run of a container that ran before this program was restarted.
    pub(crate) fn resume(&self) -> SimulatedRun {
        SimulatedRun { end: None, stop: self.delays.stop, asked: None }
    }
}

/// One run of a simulated container.
#[derive(Debug)]
pub(crate) struct SimulatedRun {
    /// The time and the result of the run's own end.
    end: Option<(Instant, Exit)>,
    /// The time that the run takes to end after a signal.
    stop: Duration,
    asked: Option<Instant>,
}

impl SimulatedRun {
    pub(crate) async fn wait(&mut self) -> Exit {
        let stop = self.asked.map(|asked| (asked + self.stop, Exit::of_code(0)));
        match self.end.clone().into_iter().chain(stop).min_by_key(|(at, _)| *at) {
            Some((at, exit)) => {
                tokio::time::sleep_until(at).await;
                exit
            }
            None => std::future::pending().await,
        }
    }

    pub(crate) fn terminate(&mut self) {
        self.asked.get_or_insert_with(Instant::now);
    }

    pub(crate) fn kill(&mut self) {
        self.asked = None;
        self.end = Some((Instant::now(), Exit::of_code(137)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simulated(key: &str, value: &str) -> SimulatedPod {
        let mut pod = Pod::default();
        pod.metadata.annotations = Some([(format!("{PREFIX}{key}"), value.to_owned())].into());
        SimulatedPod::from_pod(&pod, SimulatedOptions::default())
    }

    #[test]
    fn errors_name_key_value_and_remedy() {
        assert_eq!(simulated("fault-after", "1m 30s").after.as_secs(), 90);
        for (key, value, expect) in [
            (
                "fault",
                "fire",
                "simulated.kubelet/fault: \"fire\": unknown variant `fire`, expected one of `pull-f",
            ),
            ("pull-delay", "-1s", "pull-delay: \"-1s\": a duration is needed, such as 500ms"),
            ("fault-times", "x", "fault-times: \"x\": a number is needed"),
            ("typo", "1", "typo: \"1\": the simulated kubelet knows no such annotation"),
        ] {
            let message = simulated(key, value).mistake.unwrap();
            assert!(message.contains(expect), "{message}");
        }
    }
}
