//! The place of a spawn in the cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::lab::CertificateIssuer;
use crate::custom_resource::environment::{ClusterRef, NamespaceFate};
use crate::names::lab::JobId;
use crate::names::{LabNames, NamespaceName, ObjectName};
use crate::workload::Workload;

/// The place of a spawn in the cluster. It is recorded when the spawn is accepted, so that a later change of a template
/// does not move a lab.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// The namespace of all objects of the spawn.
    pub namespace: NamespaceName,
    /// The name of the pod; for a lab in the pods of a workload, that of the lab's other objects.
    pub pod: ObjectName,
    /// True if the lab has a Service in the service's own cluster.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_service: bool,
    /// Who issues the lab's certificate; absent if the lab is reached without TLS. Only a lab with a Service has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateIssuer>,
    /// How the cluster is reached; absent for the service's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterRef>,
    /// The claim of the lab; absent if the namespace was made for the lab itself, or exists without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<PlaceClaim>,
    /// The workload in whose pods the lab is; absent for a lab with a pod of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<PlaceWorkload>,
}

/// The workload in whose pods a lab is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct PlaceWorkload {
    /// Its kind, namespace and name.
    #[serde(flatten)]
    pub workload: Workload,
    /// Its uid, which differs from that of another workload of the same name; absent until the lab is decided. Before that,
    /// nothing of the lab is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// The claim through which a lab has its namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlaceClaim {
    /// The claim's name. That of a lab's own claim is the name of the lab's record and a part of the operation's id, so that a
    /// claim that does not go does not hinder the next lab.
    pub name: ObjectName,
    /// True if the claim is the lab's own, and deleted with the lab.
    pub own: bool,
    /// What becomes of the namespace when the lab is stopped.
    pub fate: NamespaceFate,
}

impl PlaceClaim {
    /// Creates the claim that a lab with this record may get in this operation. Until the claim has a target, nothing
    /// but the claim has to be deleted.
    pub fn of_lab(record: &ObjectName, operation: JobId) -> Self {
        let id = operation.to_string();
        let part = id.get(id.len().saturating_sub(8)..).unwrap_or_default();
        // A record's name is short enough to append the rest.
        let name = ObjectName::parse(format!("{record}-{part}")).unwrap_or_else(|_| record.clone());
        Self { name, own: true, fate: NamespaceFate::Deleted }
    }
}

impl Place {
    /// Returns the place of a lab with these names.
    pub fn from_names(names: &LabNames) -> Self {
        Self {
            namespace: names.namespace.clone(),
            pod: names.pod.clone(),
            has_service: false,
            certificate: None,
            cluster: None,
            claim: None,
            workload: None,
        }
    }
}
