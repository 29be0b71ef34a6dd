//! Traces: spans of requests and operations, which are sent to a collector (`telemetry.otlp`).
//!
//! Names and attributes of spans follow the semantic conventions of OpenTelemetry. Spans contain names of users and
//! labs, as the log does, but never headers, bodies, options, variables or error messages. Without the section
//! `telemetry.otlp`, no span is created.

mod bounded;
mod cause;
mod collector;
mod error;
mod exporter;
mod sampler;
mod spans;
mod tracing_layer;

pub use cause::{Cause, current_trace, inject, note_caller};
pub use error::OtlpError;
pub use exporter::Traces;
pub use spans::{
    answered, hub_request, kubernetes_request, operation, operation_ended, policy_answered, policy_call,
    request, trace_of,
};
pub(super) use tracing_layer::{is_exported, layer};

/// The target of the spans that are exported. They are not logged.
const TARGET: &str = "wasmspawner::trace";
