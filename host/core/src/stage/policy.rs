//! The site's patience.

use jiff::SignedDuration;

/// When a fault that may pass is taken for one that does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagePolicy {
    /// The lab was ready before. Then a container that ends is restarted by the kubelet, and no fault of one container
    /// ends the lab by itself: how many restarts are too many is decided elsewhere.
    pub was_ready: bool,
    /// Restarts of one container that are forgiven; one more is a crash loop.
    pub restarts: u32,
    /// Failed downloads of one image that end a spawn; 0 counts as 1.
    pub image_pull_failures: u32,
    /// How long a container may fail to be created: a Secret can arrive late.
    pub config_error_grace: SignedDuration,
    /// How long a volume may fail to mount before it is told: most mount at the second try.
    pub mount_grace: SignedDuration,
    /// How long a lab may fail its probes before it is told: every lab does while it starts.
    pub unhealthy_grace: SignedDuration,
    /// How long a download lasts before it is told: a cached image takes a moment.
    pub pulling_delay: SignedDuration,
}

impl Default for StagePolicy {
    fn default() -> Self {
        Self {
            was_ready: false,
            restarts: 2,
            image_pull_failures: 1,
            config_error_grace: SignedDuration::from_secs(20),
            mount_grace: SignedDuration::from_secs(30),
            unhealthy_grace: SignedDuration::from_secs(20),
            pulling_delay: SignedDuration::from_secs(8),
        }
    }
}
