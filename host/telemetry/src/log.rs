//! Structured logs on standard error.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{FilterExt as _, filter_fn};
use tracing_subscriber::layer::{Layer as _, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::util::TryInitError;
use wasmspawner_core::config::{LogFormat, TelemetryConfig};

use super::trace::{Traces, is_exported, layer};
use super::writer::{LastLines, NonBlocking};

/// Why logging cannot start.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter is not a list of directives.
    #[error("telemetry.filter: {filter:?} is not a list of directives such as \"info,wasmspawner=debug\"")]
    Filter {
        /// The filter in the configuration.
        filter: String,
        /// The error of `tracing`.
        source: tracing_subscriber::filter::ParseError,
    },
    /// Another logger was installed in the process before.
    #[error("logging was started twice")]
    Twice(#[from] TryInitError),
    /// The thread that writes the log cannot be started.
    #[error("the log's writer cannot be started")]
    Writer(#[from] std::io::Error),
}

/// The Kubernetes client logs answers that it cannot read, whole, and with them the Secrets of a site; so this holds whatever the
/// configuration says. It also warns at every connection when it does not verify certificates, which the service logs once.
const SILENCED: &str = "kube_client::client=error";

/// Starts logging, and the recording of traces where there are any, for the whole process. Lines that cannot be written at once are dropped, and counted. The returned
/// guard must be kept until the process ends.
pub fn init(config: &TelemetryConfig, traces: Option<&Traces>) -> Result<LastLines, LogError> {
    let filter = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_else(|_| config.filter.clone());
    let filter = EnvFilter::try_new(format!("{filter},{SILENCED}"))
        .map_err(|source| LogError::Filter { filter, source })?;
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

/// Starts logging for a command that ends soon: warnings as text, none of them dropped.
pub fn init_tool() -> Result<(), LogError> {
    let filter = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let filter = if filter.is_empty() { "warn" } else { &filter };
    let filter =
        EnvFilter::try_new(format!("{filter},{SILENCED}")).unwrap_or_else(|_| EnvFilter::new(SILENCED));
    let layer =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false).without_time();
    Ok(tracing_subscriber::registry().with(filter).with(layer.with_ansi(is_terminal())).try_init()?)
}

fn is_terminal() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stderr())
}
