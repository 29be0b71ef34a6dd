//! Decides which traces are recorded.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use opentelemetry::trace::{Link, SpanKind, TraceContextExt as _, TraceId, TraceState};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{SamplingDecision, SamplingResult, ShouldSample};
use wasmspawner_core::config::SampleRatio;

/// The number of traces per second that are recorded because the caller requests it.
const OF_CALLERS_PER_SECOND: NonZeroU32 = NonZeroU32::new(10).expect("ten is not zero");

/// Records a share of the traces.
///
/// The choice is random. Samplers usually derive it from the id of the trace, but callers choose the ids of the traces
/// that they begin, and could get every request recorded. For the same reason, the number of traces recorded at the
/// request of callers is limited. Anybody may request it, because the span of a request begins before its caller is
/// known.
#[derive(Clone)]
pub(super) struct Sampler {
    ratio: SampleRatio,
    of_callers: Arc<DefaultDirectRateLimiter>,
}

impl Sampler {
    pub(super) fn new(ratio: SampleRatio) -> Self {
        Self { ratio, of_callers: Arc::new(RateLimiter::direct(Quota::per_second(OF_CALLERS_PER_SECOND))) }
    }

    fn decide(&self, parent: Option<&Context>, kind: &SpanKind) -> bool {
        let parent = parent.map(|context| context.span().span_context().clone());
        match parent.filter(opentelemetry::trace::SpanContext::is_valid) {
            Some(ours) if !ours.is_remote() => ours.is_sampled(),
            Some(callers) => callers.is_sampled() && (self.of_callers.check().is_ok() || self.by_chance()),
            // Requests to other programs are recorded only as a part of another span. Watches and housekeeping alone
            // are not traces.
            None => *kind != SpanKind::Client && self.by_chance(),
        }
    }

    fn by_chance(&self) -> bool {
        let mut bytes = [0; 4];
        let drawn = getrandom::fill(&mut bytes).is_ok();
        drawn && f64::from(u32::from_le_bytes(bytes)) < self.ratio.get() * (f64::from(u32::MAX) + 1.0)
    }
}

impl ShouldSample for Sampler {
    fn should_sample(
        &self,
        parent_context: Option<&Context>,
        _trace_id: TraceId,
        _name: &str,
        span_kind: &SpanKind,
        _attributes: &[KeyValue],
        _links: &[Link],
    ) -> SamplingResult {
        let recorded = self.decide(parent_context, span_kind);
        SamplingResult {
            decision: if recorded { SamplingDecision::RecordAndSample } else { SamplingDecision::Drop },
            attributes: Vec::new(),
            trace_state: TraceState::default(),
        }
    }
}

impl fmt::Debug for Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sampler({})", self.ratio.get())
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{SpanContext, SpanId, TraceFlags};

    use super::*;

    fn sampler(ratio: f64) -> Sampler {
        Sampler::new(ratio.try_into().unwrap())
    }

    /// Returns a parent with the lowest trace id, which a choice by id would always record.
    fn parent(flags: TraceFlags, remote: bool) -> Context {
        let span = SpanContext::new(TraceId::from(1), SpanId::from(1), flags, remote, TraceState::default());
        Context::new().with_remote_span_context(span)
    }

    #[test]
    fn a_share_of_traces_is_recorded_and_parts_follow_their_trace() {
        let recorded = |sampler: &Sampler, parent: Option<&Context>, kind| {
            (0..1000).filter(|_| sampler.decide(parent, &kind)).count()
        };
        assert_eq!(recorded(&sampler(1.0), None, SpanKind::Server), 1000);
        assert_eq!(recorded(&sampler(0.0), None, SpanKind::Server), 0);
        let half = recorded(&sampler(0.5), None, SpanKind::Server);
        assert!((350..650).contains(&half), "{half}");
        assert_eq!(recorded(&sampler(1.0), None, SpanKind::Client), 0, "a watch is no trace");
        let ours = parent(TraceFlags::SAMPLED, false);
        assert_eq!(recorded(&sampler(0.0), Some(&ours), SpanKind::Client), 1000);
        let not_ours = parent(TraceFlags::default(), false);
        assert_eq!(recorded(&sampler(1.0), Some(&not_ours), SpanKind::Client), 0);
    }

    #[test]
    fn a_caller_cannot_have_more_recorded_than_a_few_traces_per_second() {
        let sampler = sampler(0.0);
        let wanted = parent(TraceFlags::SAMPLED, true);
        let recorded = (0..1000).filter(|_| sampler.decide(Some(&wanted), &SpanKind::Server)).count();
        assert!((10..=20).contains(&recorded), "{recorded}");
        let unwanted = parent(TraceFlags::default(), true);
        assert!(!self::sampler(1.0).decide(Some(&unwanted), &SpanKind::Server));
    }
}
