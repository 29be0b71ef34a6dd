//! Sends spans to the collector, on a separate thread.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_otlp::{Protocol, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider, SpanData, SpanExporter,
};
use tokio::runtime::Handle;
use wasmspawner_core::config::OtlpConfig;

use super::bounded::{Bounded, Waiting};
use super::collector::Collector;
use super::error::OtlpError;
use super::sampler::Sampler;
use crate::metrics::Metrics;

/// The maximum number of spans that wait to be sent; further ones are dropped. A span has about a kilobyte.
const MAX_WAITING_SPANS: usize = 4096;
/// The maximum number of spans in one request.
const BATCH: usize = 512;
/// The longest time between two requests.
const PAUSE: Duration = Duration::from_secs(2);
/// The maximum number of attributes of a span.
const ATTRIBUTES: u32 = 16;
/// The time that the service waits for the last spans to be sent, when it ends.
const LAST_SPANS: Duration = Duration::from_secs(2);

/// Records traces and sends them to the collector. The service never waits for the collector: spans are queued, and
/// dropped when the queue is full.
pub struct Traces(SdkTracerProvider);

impl Traces {
    /// Starts the sending thread. Its requests run on `runtime`.
    pub fn start(config: &OtlpConfig, runtime: Handle, metrics: Metrics) -> Result<Self, OtlpError> {
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(config.endpoint.join("/v1/traces"))
            .with_timeout(config.timeout.unsigned_abs())
            .with_http_client(Collector::new(config, runtime)?)
            .build()?;
        let queue = BatchConfigBuilder::default()
            .with_max_queue_size(MAX_WAITING_SPANS)
            .with_max_export_batch_size(BATCH)
            .with_scheduled_delay(PAUSE)
            .build();
        let waiting = Waiting::default();
        let counted = Counted {
            exporter,
            metrics: metrics.clone(),
            waiting: waiting.clone(),
            fails: AtomicBool::new(false),
        };
        let processor = BatchSpanProcessor::builder(counted).with_batch_config(queue).build();
        let processor = Bounded::new(processor, MAX_WAITING_SPANS, waiting, metrics);
        let resource = Resource::builder_empty()
            .with_service_name("wasmspawner")
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
        Ok(Self(
            SdkTracerProvider::builder()
                .with_span_processor(processor)
                .with_sampler(Sampler::new(config.sample_ratio))
                .with_max_attributes_per_span(ATTRIBUTES)
                .with_resource(resource.build())
                .build(),
        ))
    }

    pub(super) fn provider(&self) -> &SdkTracerProvider {
        &self.0
    }

    /// Sends the queued spans, for at most two seconds. Blocks the thread.
    pub fn finish(&self) {
        // Spans that cannot be sent now are lost.
        let _ = self.0.shutdown_with_timeout(LAST_SPANS);
    }
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Traces")
    }
}

/// Counts sent and lost spans. Logs when the collector stops accepting spans, and when it accepts them again.
#[derive(Debug)]
struct Counted<E> {
    exporter: E,
    metrics: Metrics,
    waiting: Waiting,
    fails: AtomicBool,
}

impl<E: SpanExporter> SpanExporter for Counted<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len();
        let result = self.exporter.export(batch).await;
        self.waiting.leave(count);
        self.metrics.spans_exported(count, result.is_ok());
        match (&result, self.fails.swap(result.is_err(), Ordering::Relaxed)) {
            (Err(error), false) => {
                tracing::warn!(%error, "the collector of telemetry.otlp does not accept traces; they are dropped");
            }
            (Ok(()), true) => tracing::info!("the collector of telemetry.otlp accepts traces again"),
            _ => {}
        }
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
