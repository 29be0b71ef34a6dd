//! The simulated runtime: nothing runs, but everything looks as if it did.
//!
//! What takes how long, and what goes wrong, a pod says by its annotations.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Container, Pod};
use thiserror::Error;
use tokio::time::Instant;

use super::{
    SimulatedOptions,
    probe::first_port,
    runtime::{Exit, ImageState, Role},
};

const PREFIX: &str = "simulated.kubelet/";

/// A fault of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    PullFailure,
    InvalidImage,
    ConfigError,
    CrashLoop,
    Oom,
    Exit,
    NotReady,
    Evicted,
}

/// Annotation values and the faults they choose.
const FAULTS: [(&str, Fault); 8] = [
    ("pull-failure", Fault::PullFailure),
    ("invalid-image", Fault::InvalidImage),
    ("config-error", Fault::ConfigError),
    ("crash-loop", Fault::CrashLoop),
    ("oom", Fault::Oom),
    ("exit", Fault::Exit),
    ("not-ready", Fault::NotReady),
    ("evicted", Fault::Evicted),
];

/// What a pod's annotations ask for.
#[derive(Debug, Clone)]
struct Plan {
    delays: SimulatedOptions,
    fault: Option<Fault>,
    /// How long a container (or the pod) runs before the fault.
    after: Duration,
    /// How often the fault happens before all is well.
    times: u32,
}

/// An annotation that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("annotation {PREFIX}{key}: {value:?} is no {expected}")]
pub(crate) struct AnnotationError {
    key: String,
    value: String,
    expected: String,
}

impl Plan {
    /// The plan of a pod without annotations.
    fn plain(delays: SimulatedOptions) -> Self {
        Self { delays, fault: None, after: Duration::ZERO, times: u32::MAX }
    }

    fn of(pod: &Pod, delays: SimulatedOptions) -> Result<Self, AnnotationError> {
        let mut plan = Self::plain(delays);
        for (key, value) in pod.metadata.annotations.iter().flatten() {
            if let Some(key) = key.strip_prefix(PREFIX) {
                plan.set(key, value)?;
            }
        }
        Ok(plan)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), AnnotationError> {
        let wrong = |expected: &str| AnnotationError {
            key: key.to_owned(),
            value: value.to_owned(),
            expected: expected.to_owned(),
        };
        let duration = || {
            let parsed = value.parse::<SignedDuration>().ok().and_then(|d| Duration::try_from(d).ok());
            parsed.ok_or_else(|| wrong("duration such as 500ms, 2s or 1m"))
        };
        match key {
            "schedule-delay" => self.delays.schedule = duration()?,
            "pull-delay" => self.delays.pull = duration()?,
            "init-delay" => self.delays.init = duration()?,
            "ready-delay" => self.delays.ready = duration()?,
            "stop-delay" => self.delays.stop = duration()?,
            "fault-after" => self.after = duration()?,
            "fault-times" => self.times = value.parse().map_err(|_| wrong("number of times"))?,
            "fault" => {
                let known = FAULTS.iter().find(|(name, _)| *name == value);
                let choices = FAULTS.map(|(name, _)| name).join(", ");
                self.fault = Some(known.ok_or_else(|| wrong(&format!("fault: choose one of {choices}")))?.1);
            }
            _ => return Err(wrong("annotation of the simulated kubelet")),
        }
        Ok(())
    }
}

/// A pod of which nothing runs.
#[derive(Debug)]
pub(crate) struct SimulatedPod {
    plan: Plan,
    /// How often the fault has happened.
    happened: AtomicU32,
    /// The container that faults of containers are about: the first.
    victim: Option<String>,
}

impl SimulatedPod {
    pub(crate) fn of(pod: &Pod, options: SimulatedOptions) -> Result<Self, AnnotationError> {
        let first = pod.spec.as_ref().and_then(|spec| spec.containers.first());
        let victim = first.map(|container| container.name.clone());
        Ok(Self { plan: Plan::of(pod, options)?, happened: AtomicU32::new(0), victim })
    }

    /// Without faults: for a pod whose annotations make no sense.
    pub(crate) fn plain(options: SimulatedOptions) -> Self {
        Self { plan: Plan::plain(options), happened: AtomicU32::new(0), victim: None }
    }

    pub(crate) fn delays(&self) -> &SimulatedOptions {
        &self.plan.delays
    }

    /// How long the pod runs until it is evicted, if it is.
    pub(crate) fn evicted_after(&self) -> Option<Duration> {
        (self.plan.fault == Some(Fault::Evicted)).then_some(self.plan.after)
    }

    /// Whether the fault happens to the container now; each time counts.
    fn happens(&self, fault: Fault, container: &Container) -> bool {
        self.plan.fault == Some(fault)
            && self.victim.as_ref() == Some(&container.name)
            && self.happened.fetch_add(1, Ordering::Relaxed) < self.plan.times
    }

    pub(crate) fn image(&self, container: &Container) -> ImageState {
        let image = container.image.as_deref().unwrap_or_default();
        if self.happens(Fault::InvalidImage, container) {
            ImageState::Invalid
        } else if self.happens(Fault::PullFailure, container) {
            let message = format!(
                "rpc error: code = NotFound desc = failed to pull and unpack image {image:?}: failed to resolve \
                 reference {image:?}: {image}: not found"
            );
            ImageState::Unavailable { after: self.plan.delays.pull, message }
        } else if self.plan.delays.pull.is_zero() {
            ImageState::Present
        } else {
            ImageState::Pulls { after: self.plan.delays.pull }
        }
    }

    /// The message of a container that cannot be configured.
    pub(crate) fn config_error(&self, container: &Container, pod: &Pod) -> Option<String> {
        let secret = pod.metadata.name.as_deref().unwrap_or("missing");
        self.happens(Fault::ConfigError, container).then(|| format!("secret {secret:?} not found"))
    }

    pub(crate) fn start(&self, container: &Container, role: Role) -> SimulatedRun {
        let after = |delay: Duration, exit| Some((Instant::now() + delay, exit));
        let end = if role == Role::Init {
            after(self.plan.delays.init, Exit::of_code(0))
        } else if self.happens(Fault::Oom, container) {
            after(self.plan.after, Exit { reason: "OOMKilled", ..Exit::of_code(137) })
        } else if self.happens(Fault::CrashLoop, container) || self.happens(Fault::Exit, container) {
            after(self.plan.after, Exit::of_code(1))
        } else {
            None
        };
        SimulatedRun { end, ..self.resume() }
    }

    /// What a readiness probe complains about now.
    pub(crate) fn unready(&self, container: &Container, pod_ip: &str) -> Option<String> {
        let port = first_port(container).unwrap_or(8888);
        self.happens(Fault::NotReady, container).then(|| {
            format!("Get \"http://{pod_ip}:{port}/\": dial tcp {pod_ip}:{port}: connect: connection refused")
        })
    }

    /// A container that ran before the program was restarted goes on.
    pub(crate) fn resume(&self) -> SimulatedRun {
        SimulatedRun { end: None, stop: self.plan.delays.stop, asked: None }
    }
}

/// One run of a simulated container.
#[derive(Debug)]
pub(crate) struct SimulatedRun {
    /// When and how it ends by itself.
    end: Option<(Instant, Exit)>,
    /// How long it takes to end after a signal.
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

    fn plan(annotations: &[(&str, &str)]) -> Result<Plan, AnnotationError> {
        let annotations =
            annotations.iter().map(|(key, value)| (format!("{PREFIX}{key}"), value.to_string()));
        let mut pod = Pod::default();
        pod.metadata.annotations =
            Some(annotations.chain([("other/key".to_owned(), "x".to_owned())]).collect());
        Plan::of(&pod, SimulatedOptions { pull: Duration::from_secs(2), ..SimulatedOptions::default() })
    }

    #[test]
    fn annotations_override_options() {
        let default = plan(&[]).unwrap();
        assert_eq!((default.delays.pull.as_secs(), default.fault, default.times), (2, None, u32::MAX));
        let annotations = [
            ("fault", "crash-loop"),
            ("fault-after", "1m 30s"),
            ("fault-times", "2"),
            ("pull-delay", "500ms"),
        ];
        let plan = plan(&annotations).unwrap();
        assert_eq!((plan.fault, plan.after.as_secs(), plan.times), (Some(Fault::CrashLoop), 90, 2));
        assert_eq!(plan.delays.pull.as_millis(), 500);
    }

    #[test]
    fn errors_name_key_value_and_remedy() {
        for (annotation, expect) in [
            (("fault", "fire"), "fault: \"fire\" is no fault: choose one of pull-failure,"),
            (("pull-delay", "-1s"), "pull-delay: \"-1s\" is no duration such as 500ms"),
            (("fault-times", "x"), "is no number of times"),
            (
                ("typo", "1"),
                "annotation simulated.kubelet/typo: \"1\" is no annotation of the simulated kubelet",
            ),
        ] {
            let message = plan(&[annotation]).unwrap_err().to_string();
            assert!(message.contains(expect), "{message}");
        }
    }
}
