//! Where a spawn is in the cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::{LabNames, NamespaceName, ObjectName};

/// Where a spawn is in the cluster. It is written down when the spawn is accepted: a template that changes afterwards
/// does not move a lab.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// The namespace of all its objects.
    pub namespace: NamespaceName,
    /// The name of its pod.
    pub pod: ObjectName,
}

impl Place {
    /// Where a lab of these names is.
    pub fn of(names: &LabNames) -> Self {
        Self { namespace: names.namespace.clone(), pod: names.pod.clone() }
    }
}
