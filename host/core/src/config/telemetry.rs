//! `telemetry`: logs and traces.

use std::path::PathBuf;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BaseUrl, InvalidSetting, check_span};

/// Logs and traces. Metrics need no configuration: they are at `/metrics` of `http.health_listen`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TelemetryConfig {
    /// Format of log lines.
    pub format: LogFormat,
    /// What is logged, in the syntax of `RUST_LOG`. The environment variable `RUST_LOG` overrides it.
    pub filter: String,
    /// Where traces are sent. Without this section there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otlp: Option<OtlpConfig>,
}

/// Traces, which are sent to a collector by OTLP over HTTP (protobuf).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OtlpConfig {
    /// The collector: `http://otel-collector:4318`. Traces are posted to `/v1/traces` below it.
    pub endpoint: BaseUrl,
    /// A file with headers for the collector, such as a credential: one `Name: value` per line. Only the file's owner may
    /// have access to it (mode 0600). The service reads it again for each request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers_file: Option<PathBuf>,
    /// The share of traces that are recorded, from 0 to 1. A trace that a caller has begun (`traceparent`) is recorded
    /// if the caller records it, at most ten per second; further ones count like others.
    #[serde(default)]
    #[schemars(with = "f64", range(min = 0, max = 1))]
    pub sample_ratio: SampleRatio,
    /// How long the collector may take to answer; at most a minute.
    #[serde(default = "default_timeout", deserialize_with = "crate::config::span::parse")]
    #[schemars(with = "String")]
    pub timeout: SignedDuration,
}

/// A share from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct SampleRatio(f64);

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
        Self { format: LogFormat::default(), filter: "info".to_owned(), otlp: None }
    }
}

impl TelemetryConfig {
    pub(super) fn check(&self) -> Result<(), InvalidSetting> {
        let Some(otlp) = &self.otlp else { return Ok(()) };
        check_span("telemetry.otlp.timeout", otlp.timeout, SignedDuration::from_mins(1))
    }
}

fn default_timeout() -> SignedDuration {
    SignedDuration::from_secs(10)
}

impl SampleRatio {
    /// The share, from 0 to 1.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Default for SampleRatio {
    fn default() -> Self {
        Self(1.0)
    }
}

// The value is never NaN.
impl Eq for SampleRatio {}

impl TryFrom<f64> for SampleRatio {
    type Error = String;

    fn try_from(ratio: f64) -> Result<Self, String> {
        if (0.0..=1.0).contains(&ratio) {
            Ok(Self(ratio))
        } else {
            Err(format!("{ratio} is no share; write a number from 0 to 1"))
        }
    }
}

impl From<SampleRatio> for f64 {
    fn from(ratio: SampleRatio) -> Self {
        ratio.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_number_from_0_to_1() {
        for (ratio, valid) in
            [(0.0, true), (0.25, true), (1.0, true), (-0.1, false), (1.5, false), (f64::NAN, false)]
        {
            assert_eq!(SampleRatio::try_from(ratio).is_ok(), valid, "{ratio}");
        }
    }
}
