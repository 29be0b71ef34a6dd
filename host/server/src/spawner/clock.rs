//! The time that deadlines are measured with.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Time of day as it was when the service started, and monotonic from then on: an operator who sets the machine's clock
/// does not make every spawn of that moment time out.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    began: Instant,
    began_at: Timestamp,
}

impl Clock {
    /// Reads the time of day once.
    pub fn start() -> Self {
        Self { began: Instant::now(), began_at: Timestamp::now() }
    }

    pub(super) fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.began.elapsed()).unwrap_or(SignedDuration::MAX);
        self.began_at.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }
}
