//! A fake collector of traces, which decodes the traces that it receives.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use prost::Message as _;
use tokio::net::TcpListener;

/// A collector; it ends with the test's runtime.
#[derive(Clone)]
pub struct FakeCollector {
    address: SocketAddr,
    received: Arc<Mutex<Received>>,
    answers: bool,
}

#[derive(Default)]
struct Received {
    spans: Vec<Span>,
    requests: usize,
    headers: HeaderMap,
    bytes: Vec<u8>,
}

/// A span as the collector has received it.
#[derive(Debug, Clone)]
pub struct Span {
    /// The name.
    pub name: String,
    /// The trace, in hexadecimal digits.
    pub trace: String,
    /// The id, in hexadecimal digits.
    pub id: String,
    /// The id of the parent; empty for the root of a trace.
    pub parent: String,
    /// The attributes as text.
    pub attributes: BTreeMap<String, String>,
    /// True if the span failed.
    pub failed: bool,
}

impl FakeCollector {
    /// Starts a collector that accepts traces.
    pub async fn start() -> anyhow::Result<Self> {
        Self::listen(true).await
    }

    /// Starts a collector that never answers.
    pub async fn silent() -> anyhow::Result<Self> {
        Self::listen(false).await
    }

    async fn listen(answers: bool) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let collector = Self { address: listener.local_addr()?, received: Arc::default(), answers };
        let router = Router::new().route("/v1/traces", post(receive)).with_state(collector.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(collector)
    }

    /// The value of `telemetry.otlp.endpoint`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All spans so far.
    pub fn spans(&self) -> Vec<Span> {
        self.with(|received| received.spans.clone())
    }

    /// The number of requests with traces so far.
    pub fn requests(&self) -> usize {
        self.with(|received| received.requests)
    }

    /// The headers of the last request.
    pub fn headers(&self) -> HeaderMap {
        self.with(|received| received.headers.clone())
    }

    /// True if any request so far has had this text in its body.
    pub fn has_received(&self, text: &str) -> bool {
        self.with(|received| received.bytes.windows(text.len()).any(|bytes| bytes == text.as_bytes()))
    }

    fn with<T>(&self, look: impl FnOnce(&mut Received) -> T) -> T {
        look(&mut self.received.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn receive(State(collector): State<FakeCollector>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let Ok(request) = ExportTraceServiceRequest::decode(body.clone()) else { return StatusCode::BAD_REQUEST };
    let spans = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    let spans: Vec<Span> = spans.flat_map(|scope| scope.spans).map(span).collect();
    collector.with(|received| {
        received.requests += 1;
        received.headers = headers;
        received.spans.extend(spans);
        received.bytes.extend_from_slice(&body);
    });
    if !collector.answers {
        std::future::pending::<()>().await;
    }
    StatusCode::OK
}

fn span(span: opentelemetry_proto::tonic::trace::v1::Span) -> Span {
    let attributes = span.attributes.into_iter().map(|attribute| {
        let value = attribute.value.and_then(|value| value.value);
        let text = match value {
            Some(Value::StringValue(text)) => text,
            Some(Value::IntValue(number)) => number.to_string(),
            other => format!("{other:?}"),
        };
        (attribute.key, text)
    });
    Span {
        name: span.name,
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        attributes: attributes.collect(),
        failed: span.status.is_some_and(|status| status.code == 2),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
