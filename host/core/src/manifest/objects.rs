use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{
    ConfigMap, LimitRange, Namespace, PersistentVolumeClaim, Pod, ResourceQuota, Secret, Service,
    ServiceAccount,
};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::certificate::{CERTIFICATES, Certificate};
use super::object_kind::ObjectKind;
use super::route::Route;
use crate::config::lab::REQUEST_KEY;
use crate::names::labels::{DECISION_ANNOTATION, KEPT_ANNOTATION};
use crate::policy::compose::REDACTED;
use crate::policy::kept_request::KeptRequest;
use crate::values::digest::Digest;

/// The largest size of a Secret's data, in bytes.
const MAX_SECRET_BYTES: usize = 1_000_000;

/// The objects of one lab. Optional objects are absent when nothing requires them.
#[derive(Clone, PartialEq)]
pub struct LabObjects {
    /// The namespace, which contains all the other objects. Absent where the service does not create it.
    pub namespace: Option<LabObject>,
    /// The lab's own service account, which its children share. Absent if the lab runs under an existing one.
    pub service_account: Option<ServiceAccount>,
    /// The non-secret environment.
    pub env: ConfigMap,
    /// The lab's `/etc/passwd` and `/etc/group`.
    pub nss: ConfigMap,
    /// The user's token, the site's secrets and the credentials of the environment.
    pub secret: Secret,
    /// The site's registry credential.
    pub pull_secret: Option<Secret>,
    /// Volume claims, which are created only if they do not exist.
    pub claims: Vec<PersistentVolumeClaim>,
    /// The user's limits on resources.
    pub resource_quota: Option<ResourceQuota>,
    /// Default resources for containers that set none.
    pub limit_range: Option<LimitRange>,
    /// The allowed network traffic.
    pub network_policy: Option<NetworkPolicy>,
    /// The objects that route requests to the lab: its Service with a certificate, or with a route where its cluster
    /// needs one.
    pub routes: Vec<LabObject>,
    /// The lab's pod, which needs all the other objects.
    pub pod: Pod,
}

impl LabObjects {
    /// The object that has to exist before all others: the namespace, unless the operator has created it.
    pub fn first(&self) -> Option<&LabObject> {
        self.namespace.as_ref()
    }

    /// The digest by which a kept namespace is compared with the one that this lab needs; `None` if the lab needs a new one.
    pub fn kept_namespace_as(&self) -> Option<&str> {
        let annotations = self.namespace.as_ref()?.metadata().annotations.as_ref()?;
        annotations.get(KEPT_ANNOTATION).map(String::as_str)
    }

    /// The objects that may be created in parallel, after the first and before the last. With the Secret, another process
    /// can go on with the spawn.
    pub fn rest(&self) -> impl Iterator<Item = LabObject> + '_ {
        let single = [
            self.service_account.clone().map(LabObject::from),
            Some(self.env.clone().into()),
            Some(self.nss.clone().into()),
            Some(self.secret.clone().into()),
            self.pull_secret.clone().map(LabObject::from),
            self.resource_quota.clone().map(LabObject::from),
            self.limit_range.clone().map(LabObject::from),
            self.network_policy.clone().map(LabObject::from),
        ];
        let claims = self.claims.iter().cloned().map(LabObject::from);
        single.into_iter().flatten().chain(claims).chain(self.routes.iter().cloned())
    }

    /// Puts the request into the Secret, so that another process can go on with the spawn, and notes which lab the policies
    /// have made of it.
    pub fn keep_request(&mut self, request: &KeptRequest) {
        let data = self.secret.data.get_or_insert_default();
        let bytes: usize = data.iter().map(|(key, value)| key.len() + value.0.len()).sum();
        if bytes + REQUEST_KEY.len() + request.expose().len() <= MAX_SECRET_BYTES {
            data.insert(REQUEST_KEY.to_owned(), ByteString(request.expose().to_vec()));
        }
        let digest = self.digest().to_string();
        let annotations = self.secret.metadata.annotations.get_or_insert_default();
        annotations.insert(DECISION_ANNOTATION.to_owned(), digest);
    }

    /// Returns the digest of all objects but the lab's Secret, which is compared as it is, and those that lead requests to
    /// the lab: a certificate is another one each time.
    fn digest(&self) -> Digest {
        let others = Self { routes: Vec::new(), ..self.clone() };
        let is_own =
            |object: &LabObject| matches!(object, LabObject::Secret(secret) if *secret == self.secret);
        let texts: Vec<String> = others
            .in_order()
            .filter(|object| !is_own(object))
            .map(|object| object.to_value().to_string())
            .collect();
        Digest::sha256(texts.concat().as_bytes())
    }

    /// True if the lab's Secret in the cluster was made for this very lab, so that the objects fit each other.
    pub fn fit(&self, secret: &Secret) -> bool {
        let digest =
            |secret: &Secret| secret.metadata.annotations.as_ref()?.get(DECISION_ANNOTATION).cloned();
        digest(&self.secret).is_some()
            && digest(&self.secret) == digest(secret)
            && self.secret.data == secret.data
    }

    /// The object that needs all the others: the pod.
    pub fn last(&self) -> &Pod {
        &self.pod
    }

    /// The names of claims that the pod uses and that are not created with it.
    pub fn claims_of_the_site(&self) -> impl Iterator<Item = &str> {
        let volumes = self.pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        let used =
            volumes.filter_map(|volume| Some(volume.persistent_volume_claim.as_ref()?.claim_name.as_str()));
        let created =
            |name: &str| self.claims.iter().any(|claim| claim.metadata.name.as_deref() == Some(name));
        used.filter(move |name| !created(name))
    }

    /// All objects in the order of creation.
    pub fn in_order(&self) -> impl Iterator<Item = LabObject> + '_ {
        self.first()
            .cloned()
            .into_iter()
            .chain(self.rest())
            .chain(std::iter::once_with(|| LabObject::from(self.pod.clone())))
    }

    /// All objects in the order of creation, with the values of Secrets replaced, so that they may be shown.
    pub fn redacted(&self) -> Vec<Value> {
        self.in_order().map(|object| object.redacted()).collect()
    }
}

/// Shows the names and not the contents, because Secrets are among the objects.
impl fmt::Debug for LabObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.in_order()).finish()
    }
}

/// Defines [`LabObject`], with the kind of each variant.
macro_rules! lab_object {
    ($($(#[$doc:meta])* $variant:ident($object:ty): $kind:ident,)*) => {
        /// One object of a lab.
        #[derive(Clone, PartialEq)]
        pub enum LabObject {
            $($(#[$doc])* $variant($object),)*
            /// Routes requests from outside to the lab.
            Route(Box<Route>),
            /// Asks cert-manager for the lab's certificate.
            Certificate(Box<Certificate>),
        }

        impl LabObject {
            /// The object's kind with its API group.
            pub fn object_kind(&self) -> ObjectKind {
                match self {
                    Self::Route(route) => route.object_kind(),
                    Self::Certificate(_) => CERTIFICATES,
                    $(Self::$variant(_) => ObjectKind::of::<$kind>(),)*
                }
            }

            /// True for the Secret with the request for the lab.
            pub fn has_request(&self) -> bool {
                let data = if let Self::Secret(secret) = self { secret.data.as_ref() } else { None };
                data.is_some_and(|data| data.contains_key(REQUEST_KEY))
            }

            /// The object's metadata.
            pub fn metadata(&self) -> &ObjectMeta {
                match self {
                    Self::Route(route) => &route.metadata,
                    Self::Certificate(certificate) => &certificate.metadata,
                    $(Self::$variant(object) => &object.metadata,)*
                }
            }

            /// The object as JSON with `apiVersion` and `kind`, secrets included.
            pub fn to_value(&self) -> Value {
                let value = match self {
                    Self::Route(route) => serde_json::to_value(route),
                    Self::Certificate(certificate) => serde_json::to_value(certificate),
                    $(Self::$variant(object) => serde_json::to_value(object),)*
                };
                // Serializing cannot fail, because all keys of these types are strings.
                value.unwrap_or_default()
            }
        }
    };
}

lab_object! {
    /// The lab's own namespace; see [`LabObjects::first`].
    Namespace(Namespace): Namespace,
    /// A retained namespace, which others may have created; see [`LabObjects::first`]. It is created if it does not
    /// exist, and never changed.
    RetainedNamespace(Namespace): Namespace,
    /// The lab's service account.
    ServiceAccount(ServiceAccount): ServiceAccount,
    /// The environment, or the files for `/etc/passwd` and `/etc/group`.
    ConfigMap(ConfigMap): ConfigMap,
    /// The lab's Secret, or the registry credential.
    Secret(Secret): Secret,
    /// A volume claim. It is created if it does not exist; an existing one only grows.
    PersistentVolumeClaim(Box<PersistentVolumeClaim>): PersistentVolumeClaim,
    /// The user's limits on resources.
    ResourceQuota(ResourceQuota): ResourceQuota,
    /// Default resources for containers that set none.
    LimitRange(LimitRange): LimitRange,
    /// The allowed network traffic.
    NetworkPolicy(NetworkPolicy): NetworkPolicy,
    /// The Service that gives the lab a name.
    Service(Box<Service>): Service,
    /// The pod; see [`LabObjects::last`].
    Pod(Box<Pod>): Pod,
}

/// The kinds whose objects are deleted by the lab's label where the namespace is retained: all but the pod, which is
/// deleted first, and the volume claims, which outlive the lab.
pub const KINDS_DELETED_BY_LABEL: [ObjectKind; 6] = [
    ObjectKind::of::<ConfigMap>(),
    ObjectKind::of::<Secret>(),
    ObjectKind::of::<ServiceAccount>(),
    ObjectKind::of::<ResourceQuota>(),
    ObjectKind::of::<LimitRange>(),
    ObjectKind::of::<NetworkPolicy>(),
];

/// The volume claims of a lab, which end with it where it has a namespace of its own.
pub const CLAIMS: ObjectKind = ObjectKind::of::<PersistentVolumeClaim>();

/// The kinds that labs have only in the service's own cluster, and not on the one-machine cluster. They are deleted
/// like [`KINDS_DELETED_BY_LABEL`] if the lab's record says that it has them.
pub static KINDS_IN_OWN_CLUSTER: [ObjectKind; 1] = [ObjectKind::of::<Service>()];

/// The kinds of objects of a lab in a workload.
pub const KINDS_BESIDE_WORKLOAD: [ObjectKind; 2] =
    [ObjectKind::of::<ConfigMap>(), ObjectKind::of::<Secret>()];

impl LabObject {
    /// The object's kind, as Kubernetes writes it.
    pub fn kind(&self) -> &'static str {
        self.object_kind().kind
    }

    /// The object's name.
    pub fn name(&self) -> &str {
        self.metadata().name.as_deref().unwrap_or_default()
    }

    /// The object as JSON with secret values replaced, so that it may be shown.
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

/// Shows the kind and the name of the object, and not its content.
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
