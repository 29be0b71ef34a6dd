//! Logs and metrics of the service. Neither ever waits for its reader.

mod log;
mod metrics;
mod writer;

pub use log::{LogError, init, init_tool, lab_span};
pub use metrics::{HubCheck, Metrics, SpawnOutcome, SseReader};
pub use writer::LastLines;
