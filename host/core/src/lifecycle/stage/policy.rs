//! Thresholds of the analysis: the duration or number of faults that are tolerated.

use jiff::SignedDuration;

use crate::names::spawn_key::SpawnKind;

/// Thresholds after which a fault that may pass counts as permanent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagePolicy {
    /// The kind of the pod: a lab, or a child of a lab. The kind decides only the noun in messages.
    pub kind: SpawnKind,
    /// True if the lab was ready before. The kubelet then restarts a container that ends, and no single container's
    /// fault ends the lab; `RestartPolicy` decides how many restarts are too many.
    pub was_ready: bool,
    /// Restarts of one container that are tolerated; one more is a crash loop.
    pub restarts: u32,
    /// Number of failed downloads of one image that end a spawn; 0 counts as 1.
    pub image_pull_failures: u32,
    /// The time for which downloads may fail for a reason that passes by itself, such as a limit of the registry.
    pub image_pull_patience: SignedDuration,
    /// The time for which a container may fail to be created, because a Secret may be created late.
    pub config_error_grace: SignedDuration,
    /// The time for which a volume may fail to mount before it is reported; most mount at the second attempt.
    pub mount_grace: SignedDuration,
    /// The time for which a lab may fail its probes before it is reported; every lab fails them while it starts.
    pub unhealthy_grace: SignedDuration,
    /// The time that a download may last before it is reported; an image that is on the node takes a moment.
    pub pulling_delay: SignedDuration,
}

impl StagePolicy {
    /// Returns the noun for the pod in messages.
    pub(super) fn noun(&self) -> &'static str {
        self.kind.noun()
    }
}

impl Default for StagePolicy {
    fn default() -> Self {
        Self {
            kind: SpawnKind::Lab,
            was_ready: false,
            restarts: 2,
            image_pull_failures: 1,
            image_pull_patience: SignedDuration::from_mins(5),
            config_error_grace: SignedDuration::from_secs(20),
            mount_grace: SignedDuration::from_secs(30),
            unhealthy_grace: SignedDuration::from_secs(20),
            pulling_delay: SignedDuration::from_secs(8),
        }
    }
}
