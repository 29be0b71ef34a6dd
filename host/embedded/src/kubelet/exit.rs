//! How a run of a container ended.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ContainerStateTerminated;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Exit code, and what the status says about it.
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

    /// A container that could not be started counts as one that ended at once.
    pub(crate) fn not_started(message: impl Into<String>) -> Self {
        Self { code: 128, reason: "StartError", message: message.into() }
    }

    /// A container that ran, but of which this machine knows nothing.
    pub(crate) fn unknown() -> Self {
        let message = "The container could not be located when the kubelet was restarted".to_owned();
        Self { code: 137, reason: "ContainerStatusUnknown", message }
    }

    /// The end as the container's status has it.
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
