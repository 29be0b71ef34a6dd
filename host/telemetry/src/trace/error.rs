//! Errors of the connection to the collector.

use std::path::PathBuf;

/// The reason that nothing can be sent to the collector.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    /// The file cannot be read.
    #[error("telemetry.otlp.headers_file: cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Other users may read the file.
    #[error(
        "telemetry.otlp.headers_file: {} has mode {mode:04o}, and others may read it; run `chmod 600` on it",
        path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// The mode of the file.
        mode: u32,
    },
    /// A line is not a header. The message does not quote the line, because it may contain a credential.
    #[error("telemetry.otlp.headers_file: line {line} of {} is not of the form `Name: value`", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// The number of the line, starting at 1.
        line: usize,
    },
    /// HTTPS cannot be set up.
    #[error("telemetry.otlp: cannot set up HTTPS")]
    Https(#[from] reqwest::Error),
    /// The exporter cannot be built.
    #[error("telemetry.otlp: traces cannot be sent")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
}
