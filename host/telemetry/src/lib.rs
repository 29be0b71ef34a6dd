//! Logs, metrics and traces of the service. None of them blocks the service while its reader is slow.

mod log;
mod method;
mod metrics;
mod outcome;
pub mod trace;
mod trace_id;
mod writer;

pub use log::{LogError, init, init_tool};
pub use metrics::{Metrics, SseReader};
pub use outcome::{HubCheck, Prepull, PrepullCounts, Reload, SpawnOutcome};
pub use trace::{OtlpError, Traces};
pub use trace_id::TraceId;
pub use writer::LastLines;
