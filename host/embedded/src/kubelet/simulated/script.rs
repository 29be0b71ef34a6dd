//! What a simulated pod is told by its annotations.

use std::{collections::BTreeMap, str::FromStr, time::Duration};

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use thiserror::Error;

use crate::kubelet::SimulatedOptions;

const PREFIX: &str = "simulated.kubelet/";

/// A fault that a pod meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Unschedulable,
    PvcUnbound,
    PullFailure,
    InvalidImage,
    ImageNeverPull,
    MountFailure,
    ConfigError,
    InitFailure,
    CrashLoop,
    Oom,
    Exit,
    NotReady,
    Evicted,
    NodeLoss,
    StuckDeletion,
}

/// Annotation values and the faults they choose.
const FAULTS: [(&str, Fault); 15] = [
    ("unschedulable", Fault::Unschedulable),
    ("pvc-unbound", Fault::PvcUnbound),
    ("pull-failure", Fault::PullFailure),
    ("invalid-image", Fault::InvalidImage),
    ("image-never-pull", Fault::ImageNeverPull),
    ("mount-failure", Fault::MountFailure),
    ("config-error", Fault::ConfigError),
    ("init-failure", Fault::InitFailure),
    ("crash-loop", Fault::CrashLoop),
    ("oom", Fault::Oom),
    ("exit", Fault::Exit),
    ("not-ready", Fault::NotReady),
    ("evicted", Fault::Evicted),
    ("node-loss", Fault::NodeLoss),
    ("stuck-deletion", Fault::StuckDeletion),
];

/// How long a slow pull takes when no `pull-delay` says otherwise.
const SLOW_PULL: Duration = Duration::from_mins(5);

/// How long the pods of a lost node are tolerated, as the default tolerations of Kubernetes say.
const EVICTION: Duration = Duration::from_mins(5);

/// A pod's course.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Script {
    pub(crate) schedule: Duration,
    /// Zero: the image is present.
    pub(crate) pull: Duration,
    pub(crate) init: Duration,
    pub(crate) ready: Duration,
    pub(crate) stop: Duration,
    /// From the loss of the node to the deletion of the pod.
    pub(crate) eviction: Duration,
    pub(crate) fault: Option<Fault>,
    /// How long a container (or the pod) runs before the fault.
    pub(crate) after: Duration,
    /// How often the fault strikes before all is well.
    pub(crate) times: u32,
    pub(crate) exit_code: i32,
    /// The container that is struck, instead of the first that can be.
    pub(crate) container: Option<String>,
}

/// An annotation that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("annotation {PREFIX}{key}: {value:?} is no {expected}")]
pub(crate) struct ScriptError {
    key: String,
    value: String,
    expected: String,
}

impl Script {
    /// The course of a pod without annotations.
    pub(crate) fn plain(options: &SimulatedOptions) -> Self {
        Self {
            schedule: options.schedule,
            pull: options.pull,
            init: options.init,
            ready: options.ready,
            stop: options.stop,
            eviction: EVICTION,
            fault: None,
            after: Duration::ZERO,
            times: u32::MAX,
            exit_code: 1,
            container: None,
        }
    }

    /// The course that the pod's annotations choose, the rest by the options.
    pub(crate) fn of(pod: &Pod, options: &SimulatedOptions) -> Result<Self, ScriptError> {
        let empty = BTreeMap::new();
        let annotations = pod.metadata.annotations.as_ref().unwrap_or(&empty);
        let mut script = Self::plain(options);
        if annotations.get("simulated.kubelet/fault").is_some_and(|fault| fault == "slow-pull") {
            script.pull = SLOW_PULL;
        }
        for (key, value) in annotations {
            if let Some(key) = key.strip_prefix(PREFIX) {
                script.set(key, value)?;
            }
        }
        Ok(script)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), ScriptError> {
        let wrong = |expected: &str| ScriptError {
            key: key.to_owned(),
            value: value.to_owned(),
            expected: expected.to_owned(),
        };
        let duration = || {
            let parsed = SignedDuration::from_str(value).ok().and_then(|d| Duration::try_from(d).ok());
            parsed.ok_or_else(|| wrong("duration such as 500ms, 2s or 1m"))
        };
        match key {
            "schedule-delay" => self.schedule = duration()?,
            "pull-delay" => self.pull = duration()?,
            "init-delay" => self.init = duration()?,
            "ready-delay" => self.ready = duration()?,
            "stop-delay" => self.stop = duration()?,
            "eviction-delay" => self.eviction = duration()?,
            "fault-after" => self.after = duration()?,
            "fault-times" => self.times = value.parse().map_err(|_| wrong("number of times"))?,
            "exit-code" => {
                self.exit_code = value
                    .parse()
                    .ok()
                    .filter(|code| (0..=255).contains(code))
                    .ok_or_else(|| wrong("exit code (0-255)"))?;
            }
            "container" => self.container = Some(value.to_owned()),
            "fault" if value == "slow-pull" => {}
            "fault" => {
                let choice = fault(value).ok_or_else(|| wrong(&format!("fault: choose of {}", choices())))?;
                self.fault = Some(choice);
            }
            _ => return Err(wrong("annotation of the simulated kubelet")),
        }
        Ok(())
    }
}

fn fault(name: &str) -> Option<Fault> {
    FAULTS.iter().find(|(known, _)| *known == name).map(|(_, fault)| *fault)
}

fn choices() -> String {
    FAULTS.iter().map(|(name, _)| *name).chain(["slow-pull"]).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(annotations: &[(&str, &str)]) -> Result<Script, ScriptError> {
        let annotations =
            annotations.iter().map(|(key, value)| (format!("simulated.kubelet/{key}"), value.to_string()));
        let mut pod = Pod::default();
        pod.metadata.annotations =
            Some(annotations.chain([("other/key".to_owned(), "x".to_owned())]).collect());
        Script::of(&pod, &SimulatedOptions { pull: Duration::from_secs(2), ..SimulatedOptions::default() })
    }

    #[test]
    fn annotations_override_options() {
        let plain = script(&[]).unwrap();
        assert_eq!((plain.pull.as_secs(), plain.fault, plain.times), (2, None, u32::MAX));
        let told = script(&[
            ("fault", "crash-loop"),
            ("fault-after", "1m 30s"),
            ("fault-times", "2"),
            ("exit-code", "3"),
            ("pull-delay", "500ms"),
            ("container", "proxy"),
        ])
        .unwrap();
        assert_eq!((told.fault, told.after.as_secs(), told.times), (Some(Fault::CrashLoop), 90, 2));
        assert_eq!(
            (told.exit_code, told.pull.as_millis(), told.container.as_deref()),
            (3, 500, Some("proxy"))
        );
    }

    #[test]
    fn a_slow_pull_is_only_a_long_one() {
        let slow = script(&[("fault", "slow-pull")]).unwrap();
        assert_eq!((slow.fault, slow.pull), (None, SLOW_PULL));
        assert_eq!(script(&[("fault", "slow-pull"), ("pull-delay", "9s")]).unwrap().pull.as_secs(), 9);
    }

    #[test]
    fn every_fault_has_a_name() {
        for (name, fault) in FAULTS {
            assert_eq!(script(&[("fault", name)]).unwrap().fault, Some(fault), "{name}");
        }
    }

    #[test]
    fn errors_name_key_value_and_remedy() {
        for (annotation, expect) in [
            (
                ("fault", "fire"),
                "annotation simulated.kubelet/fault: \"fire\" is no fault: choose of unschedulable,",
            ),
            (
                ("pull-delay", "soon"),
                "annotation simulated.kubelet/pull-delay: \"soon\" is no duration such as 500ms",
            ),
            (("pull-delay", "-1s"), "is no duration"),
            (("fault-times", "x"), "is no number of times"),
            (("exit-code", "256"), "is no exit code (0-255)"),
            (
                ("typo", "1"),
                "annotation simulated.kubelet/typo: \"1\" is no annotation of the simulated kubelet",
            ),
        ] {
            let message = script(&[annotation]).unwrap_err().to_string();
            assert!(message.contains(expect), "{message}");
        }
    }
}
