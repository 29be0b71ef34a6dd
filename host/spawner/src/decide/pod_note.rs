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
pub(crate) struct PodNote {
    lab: LabDescription,
    time_limits: TimeLimitsSpec,
}

impl PodNote {
    pub(crate) fn new(lab: LabDescription, limits: TimeLimits) -> Self {
        Self { lab, time_limits: limits.into() }
    }

    /// Writes the note into a pod that is to be created.
    pub(crate) fn attach(&self, pod: &mut Pod) {
        match serde_json::to_string(self) {
            Ok(text) => {
                pod.metadata.annotations.get_or_insert_default().insert(ANNOTATION.to_owned(), text);
            }
            Err(error) => tracing::error!(%error, "the policies' decision about a lab could not be stored"),
        }
    }

    /// The note on a pod; `None` if there is none or it cannot be parsed.
    pub(crate) fn read(metadata: &ObjectMeta) -> Option<Self> {
        let text = metadata.annotations.as_ref()?.get(ANNOTATION)?;
        serde_json::from_str(text)
            .inspect_err(|error| tracing::warn!(%error, "the policies' decision about a lab cannot be read"))
            .ok()
    }

    /// Adds the decision to the spec of a record.
    pub(crate) fn complete(self, spec: &mut SpawnSpec) {
        let limit = TimeLimits::from(self.time_limits).spawn;
        let operation = &mut spec.operation;
        if let Ok(deadline) = operation.started_at.checked_add(limit) {
            operation.deadline = deadline;
        }
        let mut lab = self.lab;
        if let (Some(pool), Some(recorded)) = (&mut lab.pool, &spec.lab.pool) {
            // The pool may have been scaled since.
            pool.take_workers_of(recorded);
        }
        (spec.lab, spec.time_limits) = (lab.into(), self.time_limits);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::SignedDuration;
    use serde_json::json;
    use wasmspawner_core::children::dask::WorkerRange;
    use wasmspawner_core::record::PoolDescription;

    use super::*;
    use crate::published::snapshot::LabDetails;

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

    #[test]
    fn a_pool_that_was_scaled_while_it_started_keeps_its_size() {
        let limits = TimeLimits { spawn: SignedDuration::from_mins(5), delete: SignedDuration::from_mins(2) };
        let pool = |workers, uid| LabDescription {
            uid,
            pool: Some(PoolDescription {
                workers: WorkerRange::fixed(workers),
                groups: Vec::new(),
                scheduler: None,
                idle_timeout: None,
                outlives_lab: false,
                certificate: String::new(),
                keeper: String::new(),
                worker: None,
            }),
            ..LabDescription::default()
        };
        let details = |description: LabDescription| {
            Arc::new(LabDetails { description: Arc::new(description), ..LabDetails::default() })
        };
        let decided = details(pool(4, 7)).with_workers_of(&details(pool(8, 0)));
        assert_eq!(*decided.description, pool(8, 7));
        let mut spec: SpawnSpec = serde_json::from_value(json!({
            "kind": "DaskPool", "user": "ada", "name": "p", "desired": "Running",
            "operation": {
                "id": "01926f00-0000-7000-8000-000000000000", "kind": "spawn",
                "startedAt": "2026-01-01T00:00:00Z", "deadline": "2026-01-01T00:10:00Z",
            },
            "place": { "namespace": "n", "pod": "p" },
            "timeLimits": { "spawnSeconds": 600, "deleteSeconds": 60 },
        }))
        .unwrap();
        spec.lab = pool(8, 0).into();
        PodNote::new(pool(4, 7), limits).complete(&mut spec);
        assert_eq!(*spec.lab, pool(8, 7));
    }
}
