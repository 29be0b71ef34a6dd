//! The decision of the policies, as an annotation on the lab's pod. The lab's record is written before the policies
//! decide and not again until the lab is ready. A restart in between reads the decision from the pod.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use wasmspawner_core::lifecycle::TimeLimits;
use wasmspawner_core::record::{LabDescription, SpawnSpec, TimeLimitsSpec};

const ANNOTATION: &str = "wasmspawner.io/lab";

/// The decision of the policies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PodNote {
    lab: LabDescription,
    time_limits: TimeLimitsSpec,
}

impl PodNote {
    pub(super) fn new(lab: LabDescription, limits: TimeLimits) -> Self {
        Self { lab, time_limits: limits.into() }
    }

    /// Writes the note into a pod that is to be created.
    pub(super) fn attach(&self, pod: &mut Pod) {
        match serde_json::to_string(self) {
            Ok(text) => {
                pod.metadata.annotations.get_or_insert_default().insert(ANNOTATION.to_owned(), text);
            }
            Err(error) => tracing::error!(%error, "the policies' decision about a lab could not be stored"),
        }
    }

    /// The note on a pod; `None` if there is none or it cannot be parsed.
    pub(super) fn read(metadata: &ObjectMeta) -> Option<Self> {
        let text = metadata.annotations.as_ref()?.get(ANNOTATION)?;
        serde_json::from_str(text)
            .inspect_err(|error| tracing::warn!(%error, "the policies' decision about a lab cannot be read"))
            .ok()
    }

    /// Adds the decision to the spec of a record.
    pub(super) fn complete(self, spec: &mut SpawnSpec) {
        let limit = TimeLimits::from(self.time_limits).spawn;
        let operation = &mut spec.operation;
        if let Ok(deadline) = operation.started_at.checked_add(limit) {
            operation.deadline = deadline;
        }
        (spec.lab, spec.time_limits) = (self.lab.into(), self.time_limits);
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn a_note_survives_being_attached_and_read() {
        let limits =
            TimeLimits { spawn: SignedDuration::from_mins(30), delete: SignedDuration::from_mins(2) };
        let note = PodNote::new(LabDescription { uid: 7, ..LabDescription::default() }, limits);
        let mut pod = Pod::default();
        note.attach(&mut pod);
        assert_eq!(PodNote::read(&pod.metadata), Some(note));
        pod.metadata.annotations.get_or_insert_default().insert(ANNOTATION.to_owned(), "{".to_owned());
        assert_eq!(PodNote::read(&pod.metadata), None);
    }
}
