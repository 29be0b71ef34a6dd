//! What the service says about itself: logs and metrics. Neither ever waits for whoever reads them.

mod log;
mod metrics;
mod writer;

pub use log::{LogError, init, init_tool, lab_span};
pub use metrics::{HubCheck, Metrics, SpawnOutcome, SseReader};
pub use writer::LastLines;
