//! A record as the API server stores it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DynamicObject, TypeMeta};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use wasmspawner_core::names::{LabelValue, ObjectName};
use wasmspawner_core::record::{API_VERSION, FINALIZER, INSTANCE_LABEL, KIND, SpawnSpec, SpawnStatus};

use crate::k8s::{Causes, KubernetesError};

/// A record that this version of the service cannot read, because another version or somebody else has written it. Its
/// lab may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableRecord {
    /// The name of the object.
    pub name: String,
    /// The uid of the object, which the objects of its lab name in a label.
    pub uid: String,
    /// The reason why it cannot be read.
    pub problem: String,
}

/// A record as the API server stores it.
#[derive(Debug, Clone)]
pub struct StoredSpawn {
    /// The name of the object.
    pub name: ObjectName,
    /// The uid of the object, which differs from that of an earlier object of the same name.
    pub uid: String,
    /// The installation of the service that wrote it.
    pub instance: Option<String>,
    /// True while the object is being deleted, which is a request to stop the lab.
    pub deleting: bool,
    /// The state that the record requests.
    pub spec: SpawnSpec,
    /// The progress of the service towards this state.
    pub status: Option<SpawnStatus>,
    metadata: ObjectMeta,
    /// The fields that this version of the service does not know. Each write keeps them.
    unknown: Option<Value>,
}

impl StoredSpawn {
    /// The resource version as a number, for comparing two states of the same record.
    pub fn version(&self) -> u64 {
        let version = self.metadata.resource_version.as_deref();
        version.and_then(|version| version.parse().ok()).unwrap_or_default()
    }

    /// Parses an object.
    pub(super) fn read(object: DynamicObject) -> Result<Self, UnreadableRecord> {
        let name = object.metadata.name.clone().unwrap_or_default();
        let uid = object.metadata.uid.clone().unwrap_or_default();
        Self::try_read(object).map_err(|error| UnreadableRecord {
            name,
            uid,
            problem: Causes(&error).to_string(),
        })
    }

    pub(super) fn try_read(object: DynamicObject) -> Result<Self, KubernetesError> {
        let data = object.data;
        let spec = SpawnSpec::deserialize(&data["spec"]).map_err(malformed)?;
        let status: Option<SpawnStatus> = Deserialize::deserialize(&data["status"]).map_err(malformed)?;
        let unknown = unknown_fields(&data, &written(&spec, status.as_ref())?);
        let mut metadata = object.metadata;
        metadata.managed_fields = None;
        let name = metadata.name.clone().unwrap_or_default();
        Ok(Self {
            name: ObjectName::parse(name).map_err(malformed)?,
            uid: metadata.uid.clone().unwrap_or_default(),
            instance: metadata.labels.as_ref().and_then(|labels| labels.get(INSTANCE_LABEL)).cloned(),
            deleting: metadata.deletion_timestamp.is_some(),
            spec,
            status,
            metadata,
            unknown,
        })
    }

    /// The same object with another spec and status.
    pub(super) fn with(
        &self,
        spec: &SpawnSpec,
        status: &SpawnStatus,
    ) -> Result<DynamicObject, KubernetesError> {
        let mut metadata = self.metadata.clone();
        // The service's own deletion removes the finalizer first. If that deletion did not finish, the finalizer is set
        // again here.
        if !self.deleting {
            metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
        }
        let mut object = object(metadata, spec, status)?;
        if let Some(unknown) = &self.unknown {
            add_fields(&mut object.data, unknown);
        }
        Ok(object)
    }
}

/// Returns the fields of `stored` that are not in `known`, at any depth of objects; `None` if there are none. Values that
/// are not objects, such as lists, are one field.
fn unknown_fields(stored: &Value, known: &Value) -> Option<Value> {
    let (Value::Object(stored), Value::Object(known)) = (stored, known) else { return None };
    let unknown: Map<String, Value> = stored
        .iter()
        .filter_map(|(name, value)| match known.get(name) {
            Some(known) => Some((name.clone(), unknown_fields(value, known)?)),
            None => Some((name.clone(), value.clone())),
        })
        .collect();
    (!unknown.is_empty()).then_some(Value::Object(unknown))
}

/// Adds fields to an object, except those that it has.
fn add_fields(object: &mut Value, fields: &Value) {
    let (Value::Object(object), Value::Object(fields)) = (object, fields) else { return };
    for (name, value) in fields {
        match object.get_mut(name) {
            Some(known) => add_fields(known, value),
            None => drop(object.insert(name.clone(), value.clone())),
        }
    }
}

/// The object of a new record.
pub(super) fn new_object(
    name: &ObjectName,
    instance: &LabelValue,
    spec: &SpawnSpec,
    status: &SpawnStatus,
) -> Result<DynamicObject, KubernetesError> {
    let metadata = ObjectMeta {
        name: Some(name.to_string()),
        labels: Some(BTreeMap::from([(INSTANCE_LABEL.to_owned(), instance.to_string())])),
        finalizers: Some(vec![FINALIZER.to_owned()]),
        ..ObjectMeta::default()
    };
    object(metadata, spec, status)
}

fn object(
    metadata: ObjectMeta,
    spec: &SpawnSpec,
    status: &SpawnStatus,
) -> Result<DynamicObject, KubernetesError> {
    Ok(DynamicObject {
        types: Some(TypeMeta { api_version: API_VERSION.to_owned(), kind: KIND.to_owned() }),
        metadata,
        data: written(spec, Some(status))?,
    })
}

/// Returns the spec and the status as they are written.
fn written(spec: &SpawnSpec, status: Option<&SpawnStatus>) -> Result<Value, KubernetesError> {
    let spec = serde_json::to_value(spec).map_err(malformed)?;
    let status = serde_json::to_value(status).map_err(malformed)?;
    Ok(json!({ "spec": spec, "status": status }))
}

fn malformed(error: impl std::error::Error + Send + Sync + 'static) -> KubernetesError {
    KubernetesError::Malformed(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(spec: &Value, status: &Value) -> DynamicObject {
        let mut data = json!({
            "spec": {
                "kind": "Lab", "user": "ada", "name": "", "desired": "Running",
                "operation": {
                    "id": "00000000-0000-0000-0000-000000000001", "kind": "spawn",
                    "startedAt": "2026-11-27T10:00:00Z", "deadline": "2026-11-27T10:10:00Z",
                },
                "place": { "namespace": "nublado-ada", "pod": "nb-ada" },
                "timeLimits": { "spawnSeconds": 600, "deleteSeconds": 60 },
                "lab": { "options": { "size": "small" } },
            },
            "status": { "status": "running", "stage": "Running", "message": "It runs", "progress": 100 },
        });
        add_fields(&mut data["spec"], spec);
        add_fields(&mut data["status"], status);
        let metadata = ObjectMeta { name: Some("lab-ada".to_owned()), ..ObjectMeta::default() };
        DynamicObject { types: None, metadata, data }
    }

    #[test]
    fn fields_of_another_version_are_kept_by_every_write() {
        let of_next = json!({ "place": { "zone": "a" }, "lab": { "gpu": { "count": 2 } }, "priority": 7 });
        let stored = StoredSpawn::try_read(record(&of_next, &json!({ "epoch": 4 }))).unwrap();
        let mut status = stored.status.clone().unwrap();
        status.message = None;
        let spec = SpawnSpec { desired: wasmspawner_core::record::Desired::Stopped, ..stored.spec.clone() };
        let written = stored.with(&spec, &status).unwrap().data;
        assert_eq!(
            written["spec"]["place"],
            json!({ "namespace": "nublado-ada", "pod": "nb-ada", "zone": "a" })
        );
        assert_eq!(written["spec"]["lab"]["gpu"], json!({ "count": 2 }));
        assert_eq!(written["spec"]["priority"], 7);
        assert_eq!(written["spec"]["desired"], "Stopped");
        assert_eq!(written["status"]["epoch"], 4);
        assert_eq!(written["status"].get("message"), None, "what this version knows, it decides");
        let again = DynamicObject { data: written.clone(), ..record(&json!({}), &json!({})) };
        let again = StoredSpawn::try_read(again).unwrap();
        assert_eq!(again.with(&spec, &status).unwrap().data, written);
    }

    #[test]
    fn a_record_of_this_version_has_no_unknown_fields() {
        assert_eq!(StoredSpawn::try_read(record(&json!({}), &json!({}))).unwrap().unknown, None);
    }

    #[test]
    fn a_word_of_another_version_makes_a_record_unreadable_and_not_absent() {
        let mut object = record(&json!({}), &json!({}));
        object.metadata.uid = Some("7".to_owned());
        object.data["spec"]["kind"] = "Quantum".into();
        let UnreadableRecord { name, uid, problem } = StoredSpawn::read(object).unwrap_err();
        assert_eq!((name.as_str(), uid.as_str()), ("lab-ada", "7"));
        assert!(problem.contains("Quantum"), "{problem}");
    }
}
