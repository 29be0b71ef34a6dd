//! What is sent to a collector over OTLP (`telemetry.otlp`): the connection to it, and the metrics. The traces are in
//! `trace`.

mod collector;
mod data_points;
mod error;
mod exposition;
mod metrics;

pub(super) use collector::Collector;
pub use error::OtlpError;
pub use metrics::MetricsExport;
