//! The names of one lab.

use super::field::Fields;
use super::{LabelValue, NamespaceName, ObjectName};

/// Names that a lab keeps even if the templates have changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptNames {
    /// The namespace of the lab's volumes.
    pub namespace: Option<NamespaceName>,
    /// The name of the lab's own volume claim.
    pub pvc: Option<ObjectName>,
}

/// The names of all objects of a lab, valid for Kubernetes, and the field values for further templates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabNames {
    /// The namespace of the lab's objects.
    pub namespace: NamespaceName,
    /// The pod.
    pub pod: ObjectName,
    /// The lab's own volume claim, if it has one.
    pub pvc: ObjectName,
    /// The objects of which a lab has one of each kind: its Secret, `NetworkPolicy`, `ResourceQuota`, `LimitRange`.
    pub object: ObjectName,
    /// The `ConfigMap` of environment variables.
    pub env: ObjectName,
    /// The `ConfigMap` of `/etc/passwd` and `/etc/group`.
    pub nss: ObjectName,
    /// The image pull Secret.
    pub pull_secret: ObjectName,
    /// The service account.
    pub service_account: ObjectName,
    /// The user as a label value. The raw username is in an annotation.
    pub user_label: LabelValue,
    /// The server as a label value; empty for the default server.
    pub server_label: LabelValue,
    /// The field values for templates outside the section `names`.
    pub fields: Fields,
}

impl LabNames {
    /// Returns the names for a child of the lab, whose objects are called `object` in `namespace`, the namespace of the
    /// lab. The volume claim and the service account are those of the lab.
    #[must_use]
    pub fn of_child(self, namespace: NamespaceName, object: ObjectName) -> Self {
        let suffixed =
            |suffix| ObjectName::parse(format!("{object}{suffix}")).unwrap_or_else(|_| object.clone());
        Self {
            namespace,
            pod: object.clone(),
            env: suffixed("-env"),
            nss: suffixed("-nss"),
            pull_secret: suffixed("-pull"),
            object,
            ..self
        }
    }
}
