//! Structured logs on standard error.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{FilterExt as _, filter_fn};
use tracing_subscriber::layer::{Layer as _, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::util::TryInitError;
use wasmspawner_core::config::{LogFormat, TelemetryConfig};

use super::trace::{Traces, is_exported, layer};
use super::writer::{LastLines, NonBlocking};

/// The reason that logging cannot start.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter is not a list of directives.
    #[error("{given_by}: {filter:?} is not a list of directives such as \"info,wasmspawner=debug\"")]
    Filter {
        /// Where the filter was given: `RUST_LOG`, or the key of the configuration.
        given_by: &'static str,
        /// The rejected filter.
        filter: String,
        /// The error of `tracing`.
        source: tracing_subscriber::filter::ParseError,
    },
    /// The process already has a logger.
    #[error("logging was started twice")]
    Twice(#[from] TryInitError),
    /// The thread that writes the log cannot be started.
    #[error("the log's writer cannot be started")]
    Writer(#[from] std::io::Error),
}

/// The directive that silences the Kubernetes client, whatever the configuration says. Below this level, the client
/// logs every answer that it cannot parse, as a whole, and with it the Secrets of a site. It also warns at each
/// connection without verification of certificates; the service itself logs that once.
const SILENCED: &str = "kube_client::client=error";

/// Starts logging for the whole process, and the recording of traces if `traces` is given. Lines that cannot be written
/// at once are dropped and counted. The caller must keep the returned guard until the process ends.
pub fn init(config: &TelemetryConfig, traces: Option<&Traces>) -> Result<LastLines, LogError> {
    let filter = match std::env::var(EnvFilter::DEFAULT_ENV) {
        Ok(filter) => parse(EnvFilter::DEFAULT_ENV, filter)?,
        Err(_) => parse("telemetry.filter", config.filter.clone())?,
    };
    let writer = NonBlocking::start(std::io::stderr())?;
    let last_lines = writer.last_lines();
    let filter = filter.and(filter_fn(|metadata| !is_exported(metadata)));
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    let registry = tracing_subscriber::registry().with(traces.map(layer));
    match config.format {
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true).with_current_span(false);
            registry.with(lines.with_filter(filter)).try_init()?;
        }
        LogFormat::Text => {
            let lines = lines.with_target(false).with_ansi(is_terminal());
            registry.with(lines.with_filter(filter)).try_init()?;
        }
    }
    Ok(last_lines)
}

/// Starts logging for a short-lived command: text, with warnings unless `RUST_LOG` says otherwise. No line is dropped.
pub fn init_tool() -> Result<(), LogError> {
    let filter = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let filter = if filter.is_empty() { "warn".to_owned() } else { filter };
    let filter = parse(EnvFilter::DEFAULT_ENV, filter)?;
    let layer =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false).without_time();
    Ok(tracing_subscriber::registry().with(filter).with(layer.with_ansi(is_terminal())).try_init()?)
}

/// Parses a filter, and silences what no filter may turn on.
fn parse(given_by: &'static str, filter: String) -> Result<EnvFilter, LogError> {
    EnvFilter::try_new(format!("{filter},{SILENCED}")).map_err(|source| LogError::Filter {
        given_by,
        filter,
        source,
    })
}

fn is_terminal() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stderr())
}
