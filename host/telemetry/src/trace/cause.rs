//! Passes the current span on: to other tasks, and to and from other programs.

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator as _};
use opentelemetry::trace::{FutureExt as _, TraceContextExt as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;

use crate::trace_id::TraceId;

/// W3C Trace Context. The header `tracestate` is neither read nor sent: callers would choose its content.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The span of a request, for the task that executes the request.
#[derive(Clone, Default)]
pub struct Cause(Context);

impl Cause {
    /// Returns the current span.
    pub fn current() -> Self {
        Self(Context::current())
    }

    /// Runs `work` as a part of this span.
    pub async fn during<W: Future>(self, work: W) -> W::Output {
        work.with_context(self.0).await
    }
}

/// Returns the trace of the current span, if the trace is recorded.
pub fn current_trace() -> Option<TraceId> {
    let context = Context::current();
    let span = context.span();
    let span = span.span_context();
    (span.is_valid() && span.is_sampled()).then(|| u128::from_be_bytes(span.trace_id().to_bytes()).into())
}

/// Adds the name of the authenticated caller to the current span.
pub fn note_caller(name: &str) {
    Context::current().span().set_attribute(KeyValue::new("enduser.id", name.to_owned()));
}

/// Adds the current span to the headers of a request to another program.
pub fn inject(headers: &mut HeaderMap) {
    TraceContextPropagator::new().inject(&mut Outgoing(headers));
}

/// Returns the span of the caller from the headers of its request.
pub(super) fn remote(headers: &HeaderMap) -> Context {
    TraceContextPropagator::new().extract_with_context(&Context::new(), &Incoming(headers))
}

struct Incoming<'a>(&'a HeaderMap);

impl Extractor for Incoming<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(TRACEPARENT).filter(|_| key == TRACEPARENT)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent"]
    }
}

struct Outgoing<'a>(&'a mut HeaderMap);

impl Injector for Outgoing<'_> {
    fn set(&mut self, key: &str, value: String) {
        if key == TRACEPARENT
            && let Ok(value) = HeaderValue::from_str(&value)
        {
            self.0.insert(TRACEPARENT, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_valid_traceparent_is_taken_over_and_no_tracestate() {
        let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let long = format!("{valid}-{}", "x".repeat(10_000));
        for (value, taken) in [(valid, true), ("00-0-0-01", false), ("", false), (&long, false)] {
            let headers: HeaderMap = [
                (TRACEPARENT, HeaderValue::from_str(value).unwrap()),
                (HeaderName::from_static("tracestate"), HeaderValue::from_static("secret=1")),
            ]
            .into_iter()
            .collect();
            let context = remote(&headers);
            let span = context.span().span_context().clone();
            assert_eq!(span.is_valid(), taken, "{value}");
            assert!(span.trace_state().header().is_empty());
        }
    }
}
