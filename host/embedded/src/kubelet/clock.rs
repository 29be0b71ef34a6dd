//! The time in statuses and events.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Where "now" comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Clock {
    /// The machine's clock.
    Wall,
    /// Tokio's clock from a starting point on, so that a paused runtime writes consistent times.
    Tokio { epoch: Timestamp, start: Instant },
}

impl Clock {
    pub(crate) fn following_tokio() -> Self {
        Self::Tokio { epoch: Timestamp::now(), start: Instant::now() }
    }

    pub(crate) fn now(self) -> Timestamp {
        match self {
            Self::Wall => Timestamp::now(),
            Self::Tokio { epoch, start } => SignedDuration::try_from(start.elapsed())
                .ok()
                .and_then(|elapsed| epoch.checked_add(elapsed).ok())
                .unwrap_or(epoch),
        }
    }
}
