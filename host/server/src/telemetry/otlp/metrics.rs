use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};
use opentelemetry_http::HttpClient as _;
use prost::Message as _;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use wasmspawner_core::config::OtlpConfig;

use super::collector::Collector;
use super::data_points::{Times, request};
use super::error::OtlpError;
use crate::telemetry::metrics::Metrics;

/// How long the end of the service waits until the last numbers are sent.
const LAST_NUMBERS: Duration = Duration::from_secs(2);

/// Sends the metrics to the collector, again and again (`telemetry.otlp.metrics_every`). The service never waits for that,
/// and nothing is queued: what cannot be sent now is part of the next numbers.
#[derive(Debug)]
pub struct MetricsExport {
    sending: JoinHandle<()>,
    sender: Arc<Sender>,
}

#[derive(Debug)]
struct Sender {
    collector: Collector,
    url: String,
    metrics: Metrics,
    /// When the service began to count.
    start: u64,
}

impl MetricsExport {
    /// Starts to send, if the configuration asks for it.
    ///
    /// # Errors
    ///
    /// [`OtlpError`] if the connection cannot be set up.
    pub fn start(
        config: &OtlpConfig,
        runtime: &Handle,
        metrics: &Metrics,
    ) -> Result<Option<Self>, OtlpError> {
        let Some(every) = config.metrics_every else { return Ok(None) };
        let sender = Arc::new(Sender {
            collector: Collector::new(config, runtime.clone())?,
            url: config.endpoint.join("/v1/metrics"),
            metrics: metrics.clone(),
            start: nanoseconds(),
        });
        let repeated = Arc::clone(&sender);
        let sending = runtime.spawn(async move { repeated.repeat(every.unsigned_abs()).await });
        Ok(Some(Self { sending, sender }))
    }

    /// Sends the last numbers, for at most two seconds.
    pub async fn finish(self) {
        self.sending.abort();
        // What cannot be sent now is lost.
        let _ = tokio::time::timeout(LAST_NUMBERS, self.sender.send()).await;
    }
}

impl Sender {
    async fn repeat(&self, every: Duration) {
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut failed = false;
        loop {
            ticks.tick().await;
            let result = self.send().await;
            match (&result, failed) {
                (Err(error), false) => {
                    tracing::warn!(error, "the collector of telemetry.otlp does not accept metrics");
                }
                (Ok(()), true) => tracing::info!("the collector of telemetry.otlp accepts metrics again"),
                _ => {}
            }
            failed = result.is_err();
        }
    }

    async fn send(&self) -> Result<(), String> {
        let text = self.metrics.encode().map_err(|error| error.to_string())?;
        let body = request(&text, Times { start: self.start, now: nanoseconds() }).encode_to_vec();
        let request = Request::post(&self.url).header(CONTENT_TYPE, "application/x-protobuf");
        let request = request.body(Bytes::from(body)).map_err(|error| error.to_string())?;
        let answer = self.collector.send_bytes(request).await.map_err(|error| error.to_string())?;
        match answer.status() {
            StatusCode::OK => Ok(()),
            status => Err(format!("its answer has the status {status}")),
        }
    }
}

fn nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
