//! Structured logs on standard error.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::Span;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::TryInitError;
use tracing_subscriber::{layer::SubscriberExt, util::SubscriberInitExt};
use wasmspawner_core::lab::{JobId, LabKey};

use super::writer::NonBlocking;

/// The section `log`: how the service logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// For machines or for people.
    pub format: LogFormat,
    /// What is logged, as `tracing` directives: `info`, or `info,wasmspawner=debug`.
    pub filter: String,
}

/// The shape of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// Text for a terminal.
    Pretty,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { format: LogFormat::Json, filter: "info".to_owned() }
    }
}

/// Logging cannot start.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter is not a list of directives.
    #[error("log.filter: {filter:?} is no list of directives such as \"info,wasmspawner=debug\"")]
    Filter {
        /// The filter as given.
        filter: String,
        /// What `tracing` says.
        source: tracing_subscriber::filter::ParseError,
    },
    /// Something else in the process logs already.
    #[error("logging was started twice")]
    Twice(#[from] TryInitError),
    /// The thread that writes cannot be started.
    #[error("the log's writer cannot be started")]
    Writer(#[from] std::io::Error),
}

/// Starts logging for the whole process. Lines that cannot be written at once are dropped, and counted.
pub fn init(config: &LogConfig) -> Result<(), LogError> {
    let filter = EnvFilter::try_new(&config.filter)
        .map_err(|source| LogError::Filter { filter: config.filter.clone(), source })?;
    let writer = NonBlocking::start(std::io::stderr())?;
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    let registry = tracing_subscriber::registry().with(filter);
    match config.format {
        LogFormat::Json => registry.with(layer.json().flatten_event(true).with_span_list(false)).try_init()?,
        LogFormat::Pretty => registry.with(layer.with_target(false).with_ansi(is_terminal())).try_init()?,
    }
    Ok(())
}

/// The span in which everything about one operation on a lab is logged.
pub fn lab_span(key: &LabKey, job_id: JobId) -> Span {
    tracing::info_span!("lab", user = %key.user, server = %key.server, %job_id)
}

fn is_terminal() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stderr())
}
