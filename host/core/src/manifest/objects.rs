use std::fmt;

use k8s_openapi::api::core::v1::{
    ConfigMap, LimitRange, Namespace, PersistentVolumeClaim, Pod, ResourceQuota, Secret, ServiceAccount,
};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::policy::compose::REDACTED;

/// The objects of one lab. Not there is what nothing asks for.
#[derive(Clone, PartialEq)]
pub struct LabObjects {
    /// Everything else is in it.
    pub namespace: LabObject,
    /// The lab's own account.
    pub service_account: ServiceAccount,
    /// The environment that is no secret.
    pub env: ConfigMap,
    /// The lab's `/etc/passwd` and `/etc/group`.
    pub nss: ConfigMap,
    /// The user's token, the site's secrets and the credentials of the environment.
    pub secret: Secret,
    /// The site's registry credential.
    pub pull_secret: Option<Secret>,
    /// Volume claims, to be created where they do not exist.
    pub claims: Vec<PersistentVolumeClaim>,
    /// The user's limits.
    pub resource_quota: Option<ResourceQuota>,
    /// Defaults for containers without resources.
    pub limit_range: Option<LimitRange>,
    /// Who reaches the lab.
    pub network_policy: Option<NetworkPolicy>,
    /// The lab itself; it needs all the others.
    pub pod: Pod,
}

impl LabObjects {
    /// What has to exist before anything else: the namespace.
    pub fn first(&self) -> &LabObject {
        &self.namespace
    }

    /// What may be created at the same time, between the first and the last.
    pub fn rest(&self) -> impl Iterator<Item = LabObject> + '_ {
        let single = [
            Some(self.service_account.clone().into()),
            Some(self.env.clone().into()),
            Some(self.nss.clone().into()),
            Some(self.secret.clone().into()),
            self.pull_secret.clone().map(LabObject::from),
            self.resource_quota.clone().map(LabObject::from),
            self.limit_range.clone().map(LabObject::from),
            self.network_policy.clone().map(LabObject::from),
        ];
        single.into_iter().flatten().chain(self.claims.iter().cloned().map(LabObject::from))
    }

    /// What needs all the others: the pod.
    pub fn last(&self) -> &Pod {
        &self.pod
    }

    /// All of them in order.
    pub fn in_order(&self) -> impl Iterator<Item = LabObject> + '_ {
        let first = std::iter::once_with(|| self.namespace.clone());
        first.chain(self.rest()).chain(std::iter::once_with(|| LabObject::from(self.pod.clone())))
    }

    /// All of them in order, as they may be shown to people: the values of Secrets are replaced.
    pub fn redacted(&self) -> Vec<Value> {
        self.in_order().map(|object| object.redacted()).collect()
    }
}

/// Says what is there and nothing of its content, because Secrets are among it.
impl fmt::Debug for LabObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.in_order()).finish()
    }
}

/// One object of a lab.
#[derive(Clone, PartialEq)]
pub enum LabObject {
    /// See [`LabObjects::first`]: the lab's own.
    Namespace(Namespace),
    /// See [`LabObjects::first`]: one that others may have made and that stays. It is created when it does not
    /// exist, and never changed.
    RetainedNamespace(Namespace),
    /// The lab's account.
    ServiceAccount(ServiceAccount),
    /// The environment, or the user files.
    ConfigMap(ConfigMap),
    /// The lab's Secret, or the registry credential.
    Secret(Secret),
    /// A volume claim. It is created when it does not exist, and never changed.
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
            Self::Namespace(_) | Self::RetainedNamespace(_) => "Namespace",
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
            Self::Namespace(object) | Self::RetainedNamespace(object) => &object.metadata,
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

    /// The object with `apiVersion` and `kind`, secrets included.
    pub fn to_value(&self) -> Value {
        let value = match self {
            Self::Namespace(object) | Self::RetainedNamespace(object) => serde_json::to_value(object),
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

from_kinds!(ServiceAccount, ConfigMap, Secret, ResourceQuota, LimitRange, NetworkPolicy);

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
