//! `telemetry`: logs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Logs. Metrics need no configuration: they are at `/metrics` of `http.health_listen`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TelemetryConfig {
    /// Format of log lines.
    pub format: LogFormat,
    /// What is logged, in the syntax of `RUST_LOG`. The environment variable `RUST_LOG` overrides it.
    pub filter: String,
}

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One JSON object per line.
    #[default]
    Json,
    /// Text for people.
    Text,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self { format: LogFormat::default(), filter: "info".to_owned() }
    }
}
