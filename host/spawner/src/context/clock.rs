//! The clock for deadlines.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A clock that starts with the time of day and is monotonic from then on, so that setting the machine's clock does not
/// make all spawns time out.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    began: Instant,
    began_at: Timestamp,
}

impl Clock {
    /// Starts the clock at the present time of day.
    pub fn start() -> Self {
        Self { began: Instant::now(), began_at: Timestamp::now() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.began.elapsed()).unwrap_or(SignedDuration::MAX);
        self.began_at.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }
}
