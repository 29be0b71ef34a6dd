//! The names of one lab.

use super::field::Fields;
use super::{LabelValue, NamespaceName, ObjectName};

/// Names that a lab keeps, whatever the templates say by now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptNames {
    /// Where its volumes are.
    pub namespace: Option<NamespaceName>,
    /// Its own volume claim.
    pub pvc: Option<ObjectName>,
}

/// Every name of a lab's objects, valid for Kubernetes, and the fields from which further templates are rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabNames {
    /// Where all the lab's objects are.
    pub namespace: NamespaceName,
    /// The pod.
    pub pod: ObjectName,
    /// The lab's own volume claim, where it has one.
    pub pvc: ObjectName,
    /// Objects of which a lab has one a kind: its Secret, `NetworkPolicy`, `ResourceQuota`, `LimitRange`.
    pub object: ObjectName,
    /// The `ConfigMap` of environment variables.
    pub env: ObjectName,
    /// The `ConfigMap` of `/etc/passwd` and `/etc/group`.
    pub nss: ObjectName,
    /// The Secret to pull images with.
    pub pull_secret: ObjectName,
    /// The service account.
    pub service_account: ObjectName,
    /// The user, as the value of a label. Not the raw name: that is for annotations.
    pub user_label: LabelValue,
    /// The server, as the value of a label; empty for the default server.
    pub server_label: LabelValue,
    /// The values for templates outside the `names` section.
    pub fields: Fields,
}
