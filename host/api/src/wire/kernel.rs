//! A kernel, its process and its signals.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use utoipa::ToSchema;
use wasmspawner_core::children::kernel::{self, KernelProcess};
use wasmspawner_core::policy::Value;

use super::stage::Stage;
use super::status::LabStatus;
use crate::problem::Problem;
use crate::problem::kind::ProblemKind;
use wasmspawner_spawner::KernelSnapshot;

/// A kernel.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the field names are those of the API")]
pub(crate) struct Kernel {
    /// The id that its client has given to it.
    id: String,
    /// The name of the kernel spec.
    kernel_name: String,
    /// Whether the kernel's pod is starting, running, terminating or failed.
    status: LabStatus,
    /// The stage that the pod is in.
    stage: Option<Stage>,
    /// The reason for the stage, for programs, in `CamelCase`.
    reason: Option<String>,
    /// The reason for the stage, for people.
    message: Option<String>,
    /// How far the operation is, 0 to 100.
    #[schema(maximum = 100)]
    progress: u8,
    /// The kernel's process; null until its pod has reported it.
    process: Option<Process>,
    /// How clients reach the kernel, without the keys; null until its pod runs.
    connection: Option<Address>,
    /// The options that it was started with, those of its lab included.
    #[schema(value_type = Object)]
    options: BTreeMap<String, Value>,
    /// The image that it runs.
    image: Option<String>,
    /// When the start began, RFC 3339.
    #[schema(format = DateTime)]
    started_at: Option<String>,
}

/// The process of a kernel.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Process {
    /// Counts the processes of one pod from 1. A restarted kernel has a new process.
    #[schema(minimum = 1)]
    number: u32,
    /// What it does.
    state: ProcessState,
    /// How it has ended; a negative number is the signal that ended it.
    #[serde(default)]
    #[schema(required = false)]
    exit_code: Option<i32>,
}

/// What a kernel's process does.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ProcessState {
    Starting,
    Running,
    Ended,
}

/// The address of a kernel.
#[derive(Debug, Serialize, ToSchema)]
struct Address {
    /// Always `tcp`.
    transport: &'static str,
    /// The address of the pod.
    ip: String,
    shell_port: u16,
    iopub_port: u16,
    stdin_port: u16,
    control_port: u16,
    hb_port: u16,
}

/// A signal for a kernel.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Signal {
    /// The signal's number on Linux: 2 interrupts, 9 kills, 15 asks to end.
    #[schema(value_type = u8, minimum = 1, maximum = 64)]
    signum: f64,
}

/// Parses the number of a signal.
pub(crate) fn parse_signal(body: &[u8]) -> Result<u8, Problem> {
    let signal: Signal = serde_json::from_value(parse_json(body)?).map_err(|error| unexpected(&error))?;
    // In JSON, 2.0 is the integer 2.
    (1..=64).find(|signum| f64::from(*signum).total_cmp(&signal.signum).is_eq()).ok_or_else(|| {
        let msg = format!("{} is not the number of a signal; write 1 to 64", signal.signum);
        Problem::at(&["body", "signum"], ProblemKind::InvalidSignal, msg)
    })
}

/// Parses a launcher's report about its process.
pub(crate) fn parse_process(body: &[u8]) -> Result<KernelProcess, Problem> {
    let process: Process = serde_json::from_value(parse_json(body)?).map_err(|error| unexpected(&error))?;
    let state = match (process.state, process.exit_code) {
        (ProcessState::Starting, None) => kernel::ProcessState::Starting,
        (ProcessState::Running, None) => kernel::ProcessState::Running,
        (ProcessState::Ended, Some(code)) => kernel::ProcessState::Ended(code),
        _ => {
            let msg = "a process that has ended has an `exit_code`, and no other has one";
            let loc = &["body", "exit_code"];
            return Err(Problem::at(loc, ProblemKind::InvalidProcess, msg));
        }
    };
    Ok(KernelProcess { number: process.number, state })
}

pub(super) fn parse_json(body: &[u8]) -> Result<Json, Problem> {
    serde_json::from_slice(body)
        .map_err(|error| Problem::at(&["body"], ProblemKind::MalformedJson, error.to_string()))
}

fn unexpected(error: &serde_json::Error) -> Problem {
    Problem::at(&["body"], ProblemKind::InvalidBody, error.to_string())
}

impl From<&KernelSnapshot> for Kernel {
    fn from(kernel: &KernelSnapshot) -> Self {
        let spawn = &kernel.spawn;
        let description = &spawn.about.description;
        Self {
            id: spawn.key.child.as_ref().map(|child| child.name.to_string()).unwrap_or_default(),
            kernel_name: description.kernel.as_ref().map(|kernel| kernel.name.clone()).unwrap_or_default(),
            status: spawn.status.into(),
            stage: spawn.stage.map(Stage::from),
            reason: spawn.reason.clone(),
            message: spawn.message.clone(),
            progress: spawn.progress,
            process: kernel.process.map(Process::from),
            connection: kernel.address().map(|(ip, ports)| Address {
                transport: "tcp",
                ip: ip.to_owned(),
                shell_port: ports.shell,
                iopub_port: ports.iopub,
                stdin_port: ports.stdin,
                control_port: ports.control,
                hb_port: ports.hb,
            }),
            options: description.options.clone(),
            image: description.image.as_ref().map(|image| image.reference.clone()),
            started_at: spawn.about.started_at.map(|at| at.to_string()),
        }
    }
}

impl From<KernelProcess> for Process {
    fn from(process: KernelProcess) -> Self {
        let (state, exit_code) = match process.state {
            kernel::ProcessState::Starting => (ProcessState::Starting, None),
            kernel::ProcessState::Running => (ProcessState::Running, None),
            kernel::ProcessState::Ended(code) => (ProcessState::Ended, Some(code)),
        };
        Self { number: process.number, state, exit_code }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_of_a_launcher_is_complete() {
        let report = |body: Json| parse_process(body.to_string().as_bytes());
        let ended = report(json!({"number": 2, "state": "ended", "exit_code": -9})).unwrap();
        assert_eq!(ended, KernelProcess { number: 2, state: kernel::ProcessState::Ended(-9) });
        assert!(report(json!({"number": 2, "state": "ended"})).is_err());
        assert!(report(json!({"number": 2, "state": "running", "exit_code": 0})).is_err());
        assert!(report(json!({"number": -1, "state": "running"})).is_err());
        for (signum, accepted) in [(0, false), (2, true), (64, true), (65, false), (300, false)] {
            let body = json!({ "signum": signum }).to_string();
            assert_eq!(parse_signal(body.as_bytes()).is_ok(), accepted, "{signum}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_body_is_parsed_without_a_panic(body: Vec<u8>) {
            let _ = (parse_process(&body), parse_signal(&body));
        }
    }
}
