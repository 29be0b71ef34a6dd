//! What the service says about itself: logs and metrics. Neither ever waits for whoever reads them.

mod log;
mod metrics;
mod writer;

pub use log::{LogConfig, LogError, LogFormat, init, lab_span};
pub use metrics::{Metrics, SpawnOutcome, SseReader};
