//! A record as the API server stores it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DynamicObject, TypeMeta};
use serde_json::{Value, json};
use wasmspawner_core::names::{LabelValue, ObjectName};
use wasmspawner_core::record::{API_VERSION, FINALIZER, INSTANCE_LABEL, KIND, SpawnSpec, SpawnStatus};

use crate::k8s::KubernetesError;

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
}

impl StoredSpawn {
    /// The resource version as a number, for comparing two states of the same record.
    pub fn version(&self) -> u64 {
        let version = self.metadata.resource_version.as_deref();
        version.and_then(|version| version.parse().ok()).unwrap_or_default()
    }

    /// Parses an object. If it cannot be parsed, logs it and returns `None`.
    pub(super) fn read(object: DynamicObject) -> Option<Self> {
        let name = object.metadata.name.clone().unwrap_or_default();
        match Self::try_read(object) {
            Ok(stored) => Some(stored),
            Err(error) => {
                tracing::error!(name, %error, "the record of a spawn cannot be read, and its lab is not managed; correct or delete the record");
                None
            }
        }
    }

    pub(super) fn try_read(object: DynamicObject) -> Result<Self, KubernetesError> {
        let mut data = object.data;
        let spec = serde_json::from_value(data["spec"].take()).map_err(malformed)?;
        let status: Option<SpawnStatus> = serde_json::from_value(data["status"].take()).map_err(malformed)?;
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
        object(metadata, spec, status)
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
    let value = |written: serde_json::Result<Value>| {
        written.map_err(|error| KubernetesError::Malformed(Box::new(error)))
    };
    Ok(DynamicObject {
        types: Some(TypeMeta { api_version: API_VERSION.to_owned(), kind: KIND.to_owned() }),
        metadata,
        data: json!({ "spec": value(serde_json::to_value(spec))?, "status": value(serde_json::to_value(status))? }),
    })
}

fn malformed(error: impl std::error::Error + Send + Sync + 'static) -> KubernetesError {
    KubernetesError::Malformed(Box::new(error))
}
