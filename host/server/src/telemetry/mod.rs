//! Logs and metrics of the service. Neither ever waits for its reader.

mod log;
mod metrics;
mod outcome;
mod writer;

pub use log::{LogError, init, init_tool, lab_span};
pub use metrics::{Metrics, SseReader};
pub use outcome::{HubCheck, SpawnOutcome};
pub use writer::LastLines;
