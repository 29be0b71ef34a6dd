//! A record as the API server stores it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DynamicObject, TypeMeta};
use serde::Deserialize;
use serde_json::{Value, json};
use wasmspawner_core::lifecycle::OperationKind;
use wasmspawner_core::names::spawn_key::SpawnKey;
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

impl UnreadableRecord {
    fn new(name: Option<String>, uid: Option<String>, error: &KubernetesError) -> Self {
        let problem = Causes(error).to_string();
        Self { name: name.unwrap_or_default(), uid: uid.unwrap_or_default(), problem }
    }
}

/// A record of a list of which only the names were read.
#[derive(Debug, Clone)]
pub struct ListedRecord {
    /// The lab or child whose record it is.
    pub key: SpawnKey,
    /// The uid of the object.
    pub uid: String,
}

/// The parts of a record that this version of the service knows.
struct Parsed {
    name: ObjectName,
    key: SpawnKey,
    spec: SpawnSpec,
    status: Option<SpawnStatus>,
}

impl Parsed {
    fn from_object(object: &DynamicObject) -> Result<Self, KubernetesError> {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let spec = SpawnSpec::deserialize(&object.data["spec"]).map_err(malformed)?;
        let no_child = || std::io::Error::other(format!("spec.name: `{}` names no child", spec.name));
        Ok(Self {
            name: ObjectName::parse(name).map_err(malformed)?,
            key: spec.key().ok_or_else(no_child).map_err(malformed)?,
            status: Deserialize::deserialize(&object.data["status"]).map_err(malformed)?,
            spec,
        })
    }
}

/// A record as the API server stores it.
#[derive(Debug, Clone)]
pub struct StoredSpawn {
    /// The name of the object.
    pub name: ObjectName,
    /// The lab or child whose record it is.
    pub key: SpawnKey,
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
    /// The fields that the API server has not kept when the service wrote the record, because the definition in the
    /// cluster lacks them. Empty in a record that was only read.
    pub dropped: Vec<String>,
    metadata: ObjectMeta,
    /// The fields that this version of the service does not know. Each write keeps them.
    unknown: Vec<UnknownField>,
}

impl StoredSpawn {
    /// The resource version as a number, for comparing two states of the same record.
    pub fn version(&self) -> u64 {
        self.resource_version().and_then(|version| version.parse().ok()).unwrap_or_default()
    }

    /// The resource version, which every write changes.
    pub(super) fn resource_version(&self) -> Option<&str> {
        self.metadata.resource_version.as_deref()
    }

    /// Parses an object.
    pub(super) fn read(object: DynamicObject) -> Result<Self, UnreadableRecord> {
        let (name, uid) = (object.metadata.name.clone(), object.metadata.uid.clone());
        Self::try_read(object).map_err(|error| UnreadableRecord::new(name, uid, &error))
    }

    /// Parses an object, and returns only the names of its spawn.
    pub(super) fn read_key(object: DynamicObject) -> Result<ListedRecord, UnreadableRecord> {
        match Parsed::from_object(&object) {
            Ok(Parsed { key, .. }) => Ok(ListedRecord { key, uid: object.metadata.uid.unwrap_or_default() }),
            Err(error) => Err(UnreadableRecord::new(object.metadata.name, object.metadata.uid, &error)),
        }
    }

    pub(super) fn try_read(object: DynamicObject) -> Result<Self, KubernetesError> {
        let Parsed { name, key, spec, status } = Parsed::from_object(&object)?;
        let unknown = unknown_fields(&object.data, &written(&spec, status.as_ref())?);
        let mut metadata = object.metadata;
        metadata.managed_fields = None;
        Ok(Self {
            name,
            key,
            uid: metadata.uid.clone().unwrap_or_default(),
            instance: metadata.labels.as_ref().and_then(|labels| labels.get(INSTANCE_LABEL)).cloned(),
            deleting: metadata.deletion_timestamp.is_some(),
            spec,
            status,
            dropped: Vec::new(),
            metadata,
            unknown,
        })
    }

    /// Parses the API server's answer to a write of `written`.
    pub(super) fn from_answer(
        answer: DynamicObject,
        written: &DynamicObject,
    ) -> Result<Self, KubernetesError> {
        let mut dropped = Vec::new();
        note_dropped(&written.data, &answer.data, "", &mut dropped);
        Ok(Self { dropped, ..Self::try_read(answer)? })
    }

    /// True if the API server has not kept a part of the desired state when the service wrote it.
    pub fn lacks_spec(&self) -> bool {
        self.dropped.iter().any(|path| path.starts_with("spec."))
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
        let mut object = object(metadata, written(spec, Some(status))?);
        // Another lab has nothing of the one before.
        let is_another =
            spec.operation.kind == OperationKind::Spawn && spec.operation.id != self.spec.operation.id;
        for field in self.unknown.iter().filter(|_| !is_another) {
            add_field(&mut object.data, field);
        }
        Ok(object)
    }
}

/// A field that this version of the service does not know: its path, and its value.
#[derive(Debug, Clone, PartialEq)]
struct UnknownField {
    path: Vec<String>,
    value: Value,
}

/// Returns the fields of `stored` that are not in `known`, at any depth of objects. Values that are not objects, such as
/// lists, are one field.
fn unknown_fields(stored: &Value, known: &Value) -> Vec<UnknownField> {
    let (Value::Object(stored), Value::Object(known)) = (stored, known) else { return Vec::new() };
    let fields = stored.iter().flat_map(|(name, value)| {
        match known.get(name) {
            Some(known) => unknown_fields(value, known),
            None => vec![UnknownField { path: Vec::new(), value: value.clone() }],
        }
        .into_iter()
        .map(move |mut field| {
            field.path.insert(0, name.clone());
            field
        })
    });
    fields.collect()
}

/// Adds the paths of the fields of `written` that are not in `stored`. A null is like an absent field.
fn note_dropped(written: &Value, stored: &Value, path: &str, dropped: &mut Vec<String>) {
    match (written, stored) {
        (Value::Object(written), Value::Object(stored)) => {
            for (name, value) in written.iter().filter(|(_, value)| !value.is_null()) {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match stored.get(name) {
                    Some(stored) => note_dropped(value, stored, &path, dropped),
                    None => dropped.push(path),
                }
            }
        }
        (Value::Array(written), Value::Array(stored)) => {
            for (written, stored) in written.iter().zip(stored) {
                note_dropped(written, stored, &format!("{path}[]"), dropped);
            }
        }
        _ => {}
    }
}

/// Adds a field, if the object that had it is still there, and has no such field.
fn add_field(object: &mut Value, field: &UnknownField) {
    let Some((name, parents)) = field.path.split_last() else { return };
    let parent = parents.iter().try_fold(object, |object, name| object.get_mut(name));
    if let Some(Value::Object(parent)) = parent {
        parent.entry(name).or_insert_with(|| field.value.clone());
    }
}

/// Returns the object of a new record.
pub(super) fn new_object(name: &str, instance: &LabelValue, data: Value) -> DynamicObject {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some(BTreeMap::from([(INSTANCE_LABEL.to_owned(), instance.to_string())])),
        finalizers: Some(vec![FINALIZER.to_owned()]),
        ..ObjectMeta::default()
    };
    object(metadata, data)
}

fn object(metadata: ObjectMeta, data: Value) -> DynamicObject {
    let types = TypeMeta { api_version: API_VERSION.to_owned(), kind: KIND.to_owned() };
    DynamicObject { types: Some(types), metadata, data }
}

/// Returns the spec and the status as they are written.
pub(super) fn written(spec: &SpawnSpec, status: Option<&SpawnStatus>) -> Result<Value, KubernetesError> {
    let spec = serde_json::to_value(spec).map_err(malformed)?;
    let status = serde_json::to_value(status).map_err(malformed)?;
    Ok(json!({ "spec": spec, "status": status }))
}

pub(super) fn malformed(error: impl std::error::Error + Send + Sync + 'static) -> KubernetesError {
    KubernetesError::Malformed(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge(object: &mut Value, fields: &Value) {
        let (Value::Object(object), Value::Object(fields)) = (object, fields) else { return };
        for (name, value) in fields {
            match object.get_mut(name) {
                Some(known) => merge(known, value),
                None => drop(object.insert(name.clone(), value.clone())),
            }
        }
    }

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
        merge(&mut data["spec"], spec);
        merge(&mut data["status"], status);
        let metadata = ObjectMeta { name: Some("lab-ada".to_owned()), ..ObjectMeta::default() };
        DynamicObject { types: None, metadata, data }
    }

    #[test]
    fn fields_of_another_version_are_kept_by_every_write() {
        let of_next = json!({
            "place": { "zone": "a" },
            "lab": { "gpu": { "count": 2 }, "teams": [{ "name": "a", "size": { "cpu": 1 } }] },
            "priority": 7,
        });
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
        assert_eq!(written["spec"]["lab"]["teams"], json!([{ "name": "a", "size": { "cpu": 1 } }]));
        assert_eq!(written["spec"]["priority"], 7);
        assert_eq!(written["spec"]["desired"], "Stopped");
        assert_eq!(written["status"]["epoch"], 4);
        assert_eq!(written["status"].get("message"), None, "what this version knows, it decides");
        let again = DynamicObject { data: written.clone(), ..record(&json!({}), &json!({})) };
        let again = StoredSpawn::try_read(again).unwrap();
        assert_eq!(again.with(&spec, &status).unwrap().data, written);
    }

    #[test]
    fn unknown_fields_do_not_outlive_what_had_them() {
        let failure = json!({ "reason": "OomKilled", "message": "It is over", "blame": "user", "code": 137 });
        let stored =
            StoredSpawn::try_read(record(&json!({ "zone": "a" }), &json!({ "failure": failure }))).unwrap();
        let status = SpawnStatus { failure: None, ..stored.status.clone().unwrap() };
        let written = stored.with(&stored.spec, &status).unwrap().data;
        assert_eq!(written["status"].get("failure"), None, "no fragment of a failure is left");
        assert_eq!(written["spec"]["zone"], "a");
        let mut next = stored.spec.clone();
        next.operation.id = wasmspawner_core::names::lab::JobId::new(uuid::Uuid::from_u128(2));
        let written = stored.with(&next, &status).unwrap().data;
        assert_eq!(written["spec"].get("zone"), None, "another lab has nothing of the one before");
    }

    #[test]
    fn fields_that_the_api_server_has_not_kept_are_named() {
        let written =
            record(&json!({ "remains": [{ "namespace": "a", "zone": "b" }] }), &json!({ "epoch": null }));
        let mut answer = written.clone();
        for (parent, name) in [("/spec/place", "pod"), ("/spec/remains/0", "zone"), ("/status", "message")] {
            answer.data.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name);
        }
        answer.data["spec"]["place"]["pod"] = "nb-ada".into();
        let mut dropped = Vec::new();
        note_dropped(&written.data, &answer.data, "", &mut dropped);
        assert_eq!(dropped, ["spec.remains[].zone", "status.message"]);
        note_dropped(&written.data, &written.data, "", &mut dropped);
        assert_eq!(dropped.len(), 2, "a null counts as absent");
    }

    #[test]
    fn a_record_of_this_version_has_no_unknown_fields() {
        assert_eq!(StoredSpawn::try_read(record(&json!({}), &json!({}))).unwrap().unknown, []);
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
