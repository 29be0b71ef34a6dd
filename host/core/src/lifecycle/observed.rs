//! What the cluster shows of a lab.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stage::Analysis;

/// Whether an object is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Presence {
    /// It is not there.
    #[default]
    Missing,
    /// It is there and on its way out.
    Terminating,
    /// It is there, or may be there.
    Present,
}

impl Presence {
    /// True when nothing is there, not even on its way out.
    pub fn is_missing(self) -> bool {
        self == Self::Missing
    }

    /// The presence of an object with or without a deletion timestamp.
    pub fn of(deleting: bool) -> Self {
        if deleting { Self::Terminating } else { Self::Present }
    }
}

/// Whether the lab's pod exists, as SQR-066 words it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PodPresence {
    /// The pod exists.
    Present,
    /// It does not.
    Missing,
}

/// What the cluster shows of one lab at one moment: objects at the place that the lab's record names, and belonging
/// to it. Others do not count.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The lab's pod.
    pub pod: Presence,
    /// Which pod it is.
    pub pod_uid: Option<String>,
    /// Everything else: the lab's namespace; when namespaces are retained, the lab's other objects in it; and what an
    /// earlier lab left elsewhere.
    pub rest: Presence,
    /// Why the namespace does not go, in the cluster's words: its conditions and remaining finalizers.
    pub stuck: Option<String>,
    /// What pod and events say about the stage.
    pub analysis: Analysis,
}

impl Observed {
    /// Nothing is there.
    pub fn nothing() -> Self {
        Self {
            pod: Presence::Missing,
            pod_uid: None,
            rest: Presence::Missing,
            stuck: None,
            analysis: Analysis::unknown(),
        }
    }

    /// True when nothing is left in the cluster.
    pub fn is_nothing(&self) -> bool {
        self.pod.is_missing() && self.rest.is_missing()
    }
}
