//! Probes: what they ask, when they are due, and what their answers add up to; pure but for `check`.

mod check;

pub(crate) use check::{Target, check, port_answers};

use std::time::Duration;

use k8s_openapi::{
    api::core::v1::{Container, ExecAction, HTTPGetAction, Probe},
    apimachinery::pkg::util::intstr::IntOrString,
};

/// A probe with the API's defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Schedule {
    pub(crate) action: Action,
    pub(crate) initial_delay: Duration,
    pub(crate) period: Duration,
    pub(crate) timeout: Duration,
    pub(crate) success_threshold: u32,
    pub(crate) failure_threshold: u32,
}

/// What a probe asks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    Http {
        request: HTTPGetAction,
        port: u16,
    },
    Tcp {
        port: u16,
    },
    Exec(ExecAction),
    /// A kind that cannot be asked here (gRPC), or a port name that does not exist: always healthy.
    Unknown,
}

impl Schedule {
    pub(crate) fn of(container: &Container, probe: &Probe) -> Self {
        let seconds = |value: Option<i32>, default: u64, least: u64| {
            Duration::from_secs(value.and_then(|v| u64::try_from(v).ok()).unwrap_or(default).max(least))
        };
        let count =
            |value: Option<i32>, default| value.and_then(|v| u32::try_from(v).ok()).unwrap_or(default).max(1);
        Self {
            action: Action::of(container, probe),
            initial_delay: seconds(probe.initial_delay_seconds, 0, 0),
            period: seconds(probe.period_seconds, 10, 1),
            timeout: seconds(probe.timeout_seconds, 1, 1),
            success_threshold: count(probe.success_threshold, 1),
            failure_threshold: count(probe.failure_threshold, 3),
        }
    }
}

impl Action {
    fn of(container: &Container, probe: &Probe) -> Self {
        if let Some(request) = &probe.http_get {
            let port = port(container, &request.port);
            return port.map_or(Self::Unknown, |port| Self::Http { request: request.clone(), port });
        }
        if let Some(socket) = &probe.tcp_socket {
            return port(container, &socket.port).map_or(Self::Unknown, |port| Self::Tcp { port });
        }
        probe.exec.clone().map_or(Self::Unknown, Self::Exec)
    }
}

/// A port by number or by its name in the container.
fn port(container: &Container, port: &IntOrString) -> Option<u16> {
    let number = match port {
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => {
            match container.ports.iter().flatten().find(|p| p.name.as_ref() == Some(name)) {
                Some(port) => port.container_port,
                None => name.parse().ok()?,
            }
        }
    };
    u16::try_from(number).ok()
}

/// The port that stands for the readiness of a container without a readiness probe.
pub(crate) fn first_port(container: &Container) -> Option<u16> {
    container.ports.iter().flatten().find_map(|port| u16::try_from(port.container_port).ok())
}

/// What a probe says after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Healthy,
    Unhealthy,
    /// Not enough answers of one kind in a row yet.
    Undecided,
}

/// Counts answers of one kind in a row.
#[derive(Debug)]
pub(crate) struct Streak {
    success_threshold: u32,
    failure_threshold: u32,
    good: u32,
    bad: u32,
}

impl Streak {
    pub(crate) fn new(schedule: &Schedule) -> Self {
        Self {
            success_threshold: schedule.success_threshold,
            failure_threshold: schedule.failure_threshold,
            good: 0,
            bad: 0,
        }
    }

    pub(crate) fn add(&mut self, healthy: bool) -> Verdict {
        if healthy {
            self.good += 1;
            self.bad = 0;
        } else {
            self.bad += 1;
            self.good = 0;
        }
        if self.good >= self.success_threshold {
            Verdict::Healthy
        } else if self.bad >= self.failure_threshold {
            Verdict::Unhealthy
        } else {
            Verdict::Undecided
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn schedule(probe: Value) -> Schedule {
        let container = json!({"name": "n", "ports": [{"name": "notebook", "containerPort": 8888}]});
        Schedule::of(&serde_json::from_value(container).unwrap(), &serde_json::from_value(probe).unwrap())
    }

    #[test]
    fn defaults_are_the_apis() {
        let schedule = schedule(json!({"tcpSocket": {"port": "notebook"}}));
        assert_eq!(schedule.action, Action::Tcp { port: 8888 });
        assert_eq!((schedule.period.as_secs(), schedule.timeout.as_secs()), (10, 1));
        assert_eq!((schedule.success_threshold, schedule.failure_threshold), (1, 3));
        assert_eq!(schedule.initial_delay, Duration::ZERO);
    }

    #[test]
    fn actions() {
        for (probe, expect) in [
            (json!({"tcpSocket": {"port": 80}}), Action::Tcp { port: 80 }),
            (json!({"tcpSocket": {"port": "81"}}), Action::Tcp { port: 81 }),
            (json!({"tcpSocket": {"port": "none"}}), Action::Unknown),
            (json!({"tcpSocket": {"port": 70000}}), Action::Unknown),
            (json!({"grpc": {"port": 80}}), Action::Unknown),
            (
                json!({"exec": {"command": ["true"]}}),
                Action::Exec(ExecAction { command: Some(vec!["true".into()]) }),
            ),
        ] {
            assert_eq!(schedule(probe.clone()).action, expect, "{probe}");
        }
    }

    #[test]
    fn needs_answers_in_a_row() {
        use Verdict::{Healthy, Undecided, Unhealthy};
        let mut streak = Streak::new(&Schedule {
            action: Action::Unknown,
            initial_delay: Duration::ZERO,
            period: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            success_threshold: 2,
            failure_threshold: 3,
        });
        let answers = [true, false, false, true, true, true, false, false, false, false, true];
        let verdicts = answers.map(|healthy| streak.add(healthy));
        let expect = [
            Undecided, Undecided, Undecided, Undecided, Healthy, Healthy, Undecided, Undecided, Unhealthy,
            Unhealthy, Undecided,
        ];
        assert_eq!(verdicts, expect);
    }
}
