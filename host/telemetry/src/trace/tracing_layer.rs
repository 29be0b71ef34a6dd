//! Connects the spans of the crate `tracing` with those of OpenTelemetry.

use opentelemetry::trace::TracerProvider as _;
use tracing::Metadata;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::LookupSpan;

use super::TARGET;
use super::exporter::Traces;

/// Creates the layer that records the exported spans and nothing else. Log lines do not become events of spans.
pub(crate) fn layer<S>(traces: &Traces) -> impl Layer<S> + use<S>
where
    S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
{
    let provider = traces.provider();
    let exported = FilterFn::new(|metadata| metadata.is_span() && is_exported(metadata));
    tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("wasmspawner"))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_target(false)
        .with_level(false)
        .with_filter(exported.with_max_level_hint(LevelFilter::INFO))
}

/// Returns true for spans that are exported and not logged.
pub(crate) fn is_exported(metadata: &Metadata<'_>) -> bool {
    metadata.target() == TARGET
}
