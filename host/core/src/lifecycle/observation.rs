//! What the cluster shows of a lab.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stage::Analysis;

/// Whether an object is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Presence {
    /// It is not there.
    #[default]
    Missing,
    /// It is there.
    Present,
    /// It is there and on its way out.
    Terminating,
}

impl Presence {
    /// True when nothing is there, not even on its way out.
    pub fn is_missing(self) -> bool {
        self == Self::Missing
    }
}

/// Whether the lab's pod exists, as seed 000 words it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PodPresence {
    /// The pod exists.
    Present,
    /// It does not.
    Missing,
}

/// What the watches show of one lab at one moment.
#[derive(Debug, Clone)]
pub struct Observation {
    /// The lab's pod.
    pub pod: Presence,
    /// The lab's namespace; when namespaces are retained, the lab's other objects in it.
    pub rest: Presence,
    /// What pod and events say about the stage.
    pub analysis: Analysis,
}
