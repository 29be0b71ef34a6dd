//! What a lab's objects remember of it, for the service's next start.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use serde::{Deserialize, Serialize};
use wasmspawner_core::lab::JobId;
use wasmspawner_core::lifecycle::{Operation, OperationKind};
use wasmspawner_core::manifest::LabObjects;

use super::snapshot::About;

/// The annotation of a lab's environment ConfigMap that carries the record: there is one such object a lab, and its
/// data completes the record.
const ANNOTATION: &str = "wasmspawner.io/lab";

/// What is written down of a lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct LabRecord {
    /// The spawn.
    pub(super) job_id: JobId,
    pub(super) started_at: Timestamp,
    pub(super) deadline: Timestamp,
    /// The pod's name, as it was when the lab began.
    pub(super) pod: String,
    /// Variables that are not in the data: credentials, redacted, and what only the pod knows.
    elsewhere: BTreeMap<String, String>,
    /// The rest.
    #[serde(flatten)]
    pub(super) about: About,
}

/// Writes the record onto a lab's objects.
pub(super) fn attach(objects: &mut LabObjects, about: &About, operation: &Operation) {
    let record = LabRecord {
        job_id: operation.job_id,
        started_at: operation.started_at,
        deadline: operation.deadline,
        pod: objects.pod.metadata.name.clone().unwrap_or_default(),
        elsewhere: about
            .env
            .iter()
            .filter(|(name, _)| objects.env.data.as_ref().is_none_or(|data| !data.contains_key(*name)))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        about: about.clone(),
    };
    match serde_json::to_string(&record) {
        Ok(text) => {
            objects.env.metadata.annotations.get_or_insert_default().insert(ANNOTATION.to_owned(), text);
        }
        Err(error) => tracing::error!(%error, "a lab's record could not be written down"),
    }
}

/// Reads the record back, if this is the object that carries it.
pub(super) fn read(config_map: &ConfigMap) -> Option<LabRecord> {
    let text = config_map.metadata.annotations.as_ref()?.get(ANNOTATION)?;
    match serde_json::from_str::<LabRecord>(text) {
        Ok(mut record) => {
            let mut env: BTreeMap<_, _> = config_map.data.clone().unwrap_or_default();
            env.extend(record.elsewhere.clone());
            record.about.env = env;
            record.about.started_at = Some(record.started_at);
            Some(record)
        }
        Err(error) => {
            tracing::warn!(name = ?config_map.metadata.name, %error, "a lab's record is of another version; what it said is lost");
            None
        }
    }
}

impl LabRecord {
    /// The operation that the record is of.
    pub(super) fn operation(&self, kind: OperationKind) -> Operation {
        Operation { job_id: self.job_id, kind, started_at: self.started_at, deadline: self.deadline }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_as_written() {
        let started_at = Timestamp::UNIX_EPOCH;
        let about = About { uid: 7, started_at: Some(started_at), ..About::default() };
        let record = LabRecord {
            job_id: JobId::new(uuid::Uuid::from_u128(7)),
            started_at,
            deadline: started_at,
            pod: "nb-ada".into(),
            elsewhere: [("JUPYTERHUB_API_TOKEN".into(), "<redacted>".into())].into(),
            about,
        };
        let mut config_map =
            ConfigMap { data: Some(BTreeMap::from([("A".into(), "b".into())])), ..ConfigMap::default() };
        let annotations = BTreeMap::from([(ANNOTATION.to_owned(), serde_json::to_string(&record).unwrap())]);
        config_map.metadata.annotations = Some(annotations);

        let again = read(&config_map).unwrap();
        assert_eq!(
            (again.job_id, again.about.uid, again.about.started_at),
            (record.job_id, 7, Some(started_at))
        );
        assert_eq!(again.about.env["A"], "b");
        assert_eq!(again.about.env["JUPYTERHUB_API_TOKEN"], "<redacted>");
    }
}
