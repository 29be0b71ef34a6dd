//! The place of a spawn in the cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::environment::{ClusterRef, NamespaceFate};
use crate::names::{LabNames, NamespaceName, ObjectName};

/// The place of a spawn in the cluster. It is recorded when the spawn is accepted, so that a later change of a template
/// does not move a lab.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// The namespace of all objects of the spawn.
    pub namespace: NamespaceName,
    /// The name of the pod.
    pub pod: ObjectName,
    /// How the cluster is reached; absent for the service's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterRef>,
    /// The claim of the lab; absent if the namespace was made for the lab itself, or exists without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<PlaceClaim>,
}

/// The claim through which a lab has its namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlaceClaim {
    /// The claim's name. The lab's own claim has the name of the lab's record.
    pub name: ObjectName,
    /// True if the claim is the lab's own, and deleted with the lab.
    pub own: bool,
    /// What becomes of the namespace when the lab is stopped.
    pub fate: NamespaceFate,
}

impl Place {
    /// The place of a lab with these names.
    pub fn of(names: &LabNames) -> Self {
        Self { namespace: names.namespace.clone(), pod: names.pod.clone(), cluster: None, claim: None }
    }
}
