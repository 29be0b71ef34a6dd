//! The place of a spawn in the cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
}

impl Place {
    /// The place of a lab with these names.
    pub fn of(names: &LabNames) -> Self {
        Self { namespace: names.namespace.clone(), pod: names.pod.clone() }
    }
}
