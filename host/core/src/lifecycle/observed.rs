//! The observed state of a lab in the cluster.

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lifecycle::stage::Analysis;

/// The presence of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Presence {
    /// The object does not exist.
    #[default]
    Missing,
    /// The object is being deleted.
    Terminating,
    /// The object exists, or may exist.
    Present,
}

impl Presence {
    /// Returns true for [`Presence::Missing`].
    pub fn is_missing(self) -> bool {
        self == Self::Missing
    }

    /// Returns the presence of an existing object, which is `deleting` if it has a deletion timestamp.
    pub fn from_deleting(deleting: bool) -> Self {
        if deleting { Self::Terminating } else { Self::Present }
    }
}

/// Whether the lab's pod exists, with the names of SQR-066.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PodPresence {
    /// The pod exists.
    Present,
    /// The pod does not exist.
    Missing,
}

/// The existing objects of one lab at one moment: the objects at the place that the lab's record names, if they carry
/// the record's uid. Other objects are not included.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The lab's pod.
    pub pod: Presence,
    /// The uid of that pod.
    pub pod_uid: Option<String>,
    /// All other objects: the lab's namespace or, when that stays or is kept for a while, the lab's objects in it; and the
    /// objects that an earlier lab left at another place.
    pub rest: Presence,
    /// The time for which the lab's own namespace is kept once the lab has ended; absent if there is none, or if it is
    /// part of `rest`.
    pub kept_for: Option<SignedDuration>,
    /// The children of the lab: its kernels and pools. They are deleted before the lab.
    pub children: Presence,
    /// The number of workers of a Dask pool.
    pub workers: usize,
    /// True if a Dask pool has fewer worker pods than it is to have, or some that it does not need.
    pub is_unsized: bool,
    /// The reason why the deletion of the namespace does not finish: its conditions and remaining finalizers.
    pub stuck: Option<String>,
    /// The stage, as analysed from the pod and its events.
    pub analysis: Analysis,
}

impl Observed {
    /// Returns the observation that nothing exists.
    pub fn nothing() -> Self {
        Self {
            pod: Presence::Missing,
            pod_uid: None,
            rest: Presence::Missing,
            kept_for: None,
            children: Presence::Missing,
            workers: 0,
            is_unsized: false,
            stuck: None,
            analysis: Analysis::unknown(),
        }
    }

    /// Returns the presence of the objects and the number of workers, for noticing progress.
    pub(super) fn presences(&self) -> ([Presence; 3], usize) {
        ([self.children, self.pod, self.rest], self.workers)
    }

    /// Returns true when nothing is left in the cluster except perhaps a namespace that is kept.
    pub fn is_nothing(&self) -> bool {
        self.pod.is_missing() && self.rest.is_missing() && self.children.is_missing()
    }
}
