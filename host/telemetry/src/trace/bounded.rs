//! Counts the spans that wait to be sent, and those that are dropped because too many are waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};

use crate::metrics::Metrics;

/// The number of spans that wait or are being sent. Clones share the count.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting(Arc<AtomicUsize>);

impl Waiting {
    /// Adds one span, if fewer than `most` wait. Returns false otherwise.
    fn enter(&self, most: usize) -> bool {
        let more = |count| (count < most).then_some(count + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Removes `count` spans.
    pub(super) fn leave(&self, count: usize) {
        self.0.fetch_sub(count, Ordering::Relaxed);
    }
}

/// Passes spans on to the queue of `processor` while it has room. The queue itself would drop the others silently.
#[derive(Debug)]
pub(super) struct Bounded<P> {
    processor: P,
    most: usize,
    waiting: Waiting,
    metrics: Metrics,
}

impl<P> Bounded<P> {
    pub(super) fn new(processor: P, most: usize, waiting: Waiting, metrics: Metrics) -> Self {
        Self { processor, most, waiting, metrics }
    }
}

impl<P: SpanProcessor> SpanProcessor for Bounded<P> {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.processor.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if !span.span_context.is_sampled() {
            return;
        }
        if self.waiting.enter(self.most) {
            self.processor.on_end(span);
        } else {
            self.metrics.span_dropped();
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.processor.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.processor.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.processor.set_resource(resource);
    }
}
