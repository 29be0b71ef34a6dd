use std::fmt;

use k8s_openapi::api::core::v1::{
    ConfigMap, LimitRange, Namespace, PersistentVolumeClaim, Pod, ResourceQuota, Secret, ServiceAccount,
};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::policy::compose::REDACTED;

/// The objects of one lab, in the order in which they have to exist.
#[derive(Clone, PartialEq)]
pub struct LabObjects {
    namespace: Namespace,
    rest: Vec<LabObject>,
    pod: Pod,
}

impl LabObjects {
    pub(super) fn new(namespace: Namespace, rest: Vec<LabObject>, pod: Pod) -> Self {
        Self { namespace, rest, pod }
    }

    /// The namespace: everything else is in it.
    pub fn first(&self) -> &Namespace {
        &self.namespace
    }

    /// What may be created at the same time, once the namespace exists.
    pub fn rest(&self) -> impl ExactSizeIterator<Item = &LabObject> {
        self.rest.iter()
    }

    /// The pod: it needs all the others.
    pub fn last(&self) -> &Pod {
        &self.pod
    }

    /// All of them as they may be shown to people, in order: the values of Secrets are replaced.
    pub fn redacted(&self) -> Vec<Value> {
        let namespace = LabObject::from(self.namespace.clone());
        let pod = LabObject::from(self.pod.clone());
        std::iter::once(&namespace).chain(&self.rest).chain([&pod]).map(LabObject::redacted).collect()
    }
}

/// Says what is there and nothing of its content, because Secrets are among it.
impl fmt::Debug for LabObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entry(&"Namespace")
            .entries(self.rest.iter().map(LabObject::kind))
            .entry(&"Pod")
            .finish()
    }
}

/// One object of a lab.
#[derive(Clone, PartialEq)]
pub enum LabObject {
    /// See [`LabObjects::first`].
    Namespace(Namespace),
    /// The lab's account.
    ServiceAccount(ServiceAccount),
    /// The environment, or the user files.
    ConfigMap(ConfigMap),
    /// The lab's Secret, or the registry credential.
    Secret(Secret),
    /// A volume claim. It is created when it does not exist, and never changed: see [`LabObject::is_create_only`].
    PersistentVolumeClaim(Box<PersistentVolumeClaim>),
    /// The user's limits.
    ResourceQuota(ResourceQuota),
    /// Defaults for containers without resources.
    LimitRange(LimitRange),
    /// Who reaches the lab.
    NetworkPolicy(NetworkPolicy),
    /// See [`LabObjects::last`].
    Pod(Box<Pod>),
}

impl LabObject {
    /// Its kind, as Kubernetes writes it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Namespace(_) => "Namespace",
            Self::ServiceAccount(_) => "ServiceAccount",
            Self::ConfigMap(_) => "ConfigMap",
            Self::Secret(_) => "Secret",
            Self::PersistentVolumeClaim(_) => "PersistentVolumeClaim",
            Self::ResourceQuota(_) => "ResourceQuota",
            Self::LimitRange(_) => "LimitRange",
            Self::NetworkPolicy(_) => "NetworkPolicy",
            Self::Pod(_) => "Pod",
        }
    }

    /// Its metadata.
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Namespace(object) => &object.metadata,
            Self::ServiceAccount(object) => &object.metadata,
            Self::ConfigMap(object) => &object.metadata,
            Self::Secret(object) => &object.metadata,
            Self::PersistentVolumeClaim(object) => &object.metadata,
            Self::ResourceQuota(object) => &object.metadata,
            Self::LimitRange(object) => &object.metadata,
            Self::NetworkPolicy(object) => &object.metadata,
            Self::Pod(object) => &object.metadata,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.metadata().name.as_deref().unwrap_or_default()
    }

    /// True for what must be left alone when it exists.
    pub fn is_create_only(&self) -> bool {
        matches!(self, Self::PersistentVolumeClaim(_))
    }

    /// The object with `apiVersion` and `kind`, secrets included.
    pub fn to_value(&self) -> Value {
        let value = match self {
            Self::Namespace(object) => serde_json::to_value(object),
            Self::ServiceAccount(object) => serde_json::to_value(object),
            Self::ConfigMap(object) => serde_json::to_value(object),
            Self::Secret(object) => serde_json::to_value(object),
            Self::PersistentVolumeClaim(object) => serde_json::to_value(object),
            Self::ResourceQuota(object) => serde_json::to_value(object),
            Self::LimitRange(object) => serde_json::to_value(object),
            Self::NetworkPolicy(object) => serde_json::to_value(object),
            Self::Pod(object) => serde_json::to_value(object),
        };
        // These types have string keys only, which is all that JSON asks for.
        value.unwrap_or_default()
    }

    /// The object as it may be shown to people.
    pub fn redacted(&self) -> Value {
        let mut value = self.to_value();
        if let Self::Secret(_) = self
            && let Some(fields) = value.as_object_mut()
            && let Some(Value::Object(data)) = fields.remove("data")
        {
            let hidden: serde_json::Map<_, _> =
                data.into_iter().map(|(key, _)| (key, json!(REDACTED))).collect();
            fields.insert("stringData".to_owned(), Value::Object(hidden));
        }
        value
    }
}

/// Says which object it is and nothing of its content.
impl fmt::Debug for LabObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind(), self.name())
    }
}

macro_rules! from_kinds {
    ($($kind:ident),*) => {
        $(impl From<$kind> for LabObject {
            fn from(object: $kind) -> Self {
                Self::$kind(object)
            }
        })*
    };
}

from_kinds!(Namespace, ServiceAccount, ConfigMap, Secret, ResourceQuota, LimitRange, NetworkPolicy);

impl From<PersistentVolumeClaim> for LabObject {
    fn from(claim: PersistentVolumeClaim) -> Self {
        Self::PersistentVolumeClaim(Box::new(claim))
    }
}

impl From<Pod> for LabObject {
    fn from(pod: Pod) -> Self {
        Self::Pod(Box::new(pod))
    }
}
