//! The end of a container's run.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ContainerStateTerminated;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The exit code, with the reason and the message for the status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) code: i32,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Exit {
    pub(crate) fn of_code(code: i32) -> Self {
        Self { code, reason: if code == 0 { "Completed" } else { "Error" }, message: String::new() }
    }

    /// Returns the end of a container that could not be started: it counts as one that ended at once.
    pub(crate) fn not_started(message: impl Into<String>) -> Self {
        Self { code: 128, reason: "StartError", message: message.into() }
    }

    /// Returns the end of a container that ran, but of which this machine has no record.
    pub(crate) fn unknown() -> Self {
        let message = "The container could not be located when the kubelet was restarted".to_owned();
        Self { code: 137, reason: "ContainerStatusUnknown", message }
    }

    /// Converts the end into its form in the container's status.
    pub(crate) fn terminated(
        self,
        started_at: Option<Time>,
        finished_at: Timestamp,
        container_id: Option<String>,
    ) -> ContainerStateTerminated {
        ContainerStateTerminated {
            exit_code: self.code,
            reason: Some(self.reason.to_owned()),
            message: Some(self.message).filter(|message| !message.is_empty()),
            started_at,
            finished_at: Some(Time(finished_at)),
            container_id,
            ..ContainerStateTerminated::default()
        }
    }
}
