//! Measures the computing time of calls. The time of other threads and programs does not count.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The interval of the engine's clock, which is the precision of deadlines.
pub(crate) const TICK: Duration = Duration::from_millis(5);

/// The computing time after which a slice is long. Guests are checked at each tick of the clock, in every loop and
/// function. Only a guest that does nothing but call the host is not checked, and would never end its slice.
const LONG: Duration = Duration::from_millis(20);

/// The length of a time slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Short,
    /// The clock must tick, so that the guest is checked.
    Long,
    /// The clock has ticked, and the guest has not been checked for the same time again.
    TooLong,
}

/// A time slice of a call: the time since the call got a thread. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct TimeSlice(Arc<State>);

#[derive(Default)]
struct State {
    /// The computing time of the thread when the slice began, in nanoseconds.
    begun: AtomicU64,
    /// The limit of computing time in this slice, in nanoseconds, set once the slice is long. 0: the slice is not long.
    longest: AtomicU64,
    /// The counted time of the earlier slices, in nanoseconds.
    counted_before: AtomicU64,
    /// The whole computing time of the earlier slices, in nanoseconds.
    computed_before: AtomicU64,
    /// True if the call has yielded its thread to others, and has waited only for a thread since.
    lets_others: AtomicBool,
    /// True if the call waits for something other than a thread.
    waits: AtomicBool,
}

impl TimeSlice {
    /// Begins a slice on this thread.
    pub(crate) fn begin(&self) {
        self.0.begun.store(thread_time(), Ordering::Relaxed);
        self.0.longest.store(0, Ordering::Relaxed);
        self.0.lets_others.store(false, Ordering::Relaxed);
        self.0.waits.store(false, Ordering::Relaxed);
    }

    /// Returns the computing time of the call in this slice. Must run on the thread that makes the call.
    pub(crate) fn computed(&self) -> Duration {
        Duration::from_nanos(thread_time().saturating_sub(self.0.begun.load(Ordering::Relaxed)))
    }

    /// Returns the length of the slice. Must run on the thread that makes the call.
    pub(crate) fn length(&self) -> Length {
        let computed = self.computed();
        let longest = Duration::from_nanos(self.0.longest.load(Ordering::Relaxed));
        if computed <= LONG {
            Length::Short
        } else if longest.is_zero() {
            self.0.longest.store(nanos(computed + LONG), Ordering::Relaxed);
            Length::Long
        } else if computed <= longest {
            Length::Long
        } else {
            Length::TooLong
        }
    }

    /// Returns the computing time of the call that counts against its limit. A slice counts for a tick at most: the
    /// guest is checked at each tick of the clock, so any time beyond a tick is the work of the host.
    pub(crate) fn counted(&self) -> Duration {
        self.counted_with(self.computed())
    }

    fn counted_with(&self, this_slice: Duration) -> Duration {
        let before = Duration::from_nanos(self.0.counted_before.load(Ordering::Relaxed));
        before + this_slice.min(TICK)
    }

    /// Returns the whole computing time of the call in the slices that have ended.
    pub(crate) fn computed_in_all(&self) -> Duration {
        Duration::from_nanos(self.0.computed_before.load(Ordering::Relaxed))
    }

    /// Notes that the slice is about to end because the call yields its thread.
    pub(crate) fn let_others(&self) {
        self.0.lets_others.store(true, Ordering::Relaxed);
    }

    /// Returns true if the call waits for something other than a thread.
    pub(crate) fn waits(&self) -> bool {
        self.0.waits.load(Ordering::Relaxed)
    }

    /// Ends a slice of this length. Takes the length as an argument, because reading the clock once more would take as
    /// long as the rest.
    fn end(&self, computed: Duration, call_has_ended: bool) {
        self.0.computed_before.fetch_add(nanos(computed), Ordering::Relaxed);
        self.0.counted_before.store(nanos(self.counted_with(computed)), Ordering::Relaxed);
        let waits = !call_has_ended && !self.0.lets_others.load(Ordering::Relaxed);
        self.0.waits.store(waits, Ordering::Relaxed);
    }
}

/// A call that runs in time slices. A slice ends when the call waits for something, or yields its thread.
pub(crate) struct InSlices<F> {
    call: Pin<Box<F>>,
    slice: TimeSlice,
}

impl<F: Future> InSlices<F> {
    pub(crate) fn new(call: F, slice: TimeSlice) -> Self {
        Self { call: Box::pin(call), slice }
    }

    /// Returns the whole computing time in all slices that have ended.
    pub(crate) fn computed(&self) -> Duration {
        self.slice.computed_in_all()
    }

    /// Returns the slice of the call, for callers that do not hold the call.
    pub(crate) fn slice(&self) -> TimeSlice {
        self.slice.clone()
    }
}

impl<F: Future> Future for InSlices<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.slice.begin();
        let polled = self.call.as_mut().poll(cx);
        let computed = self.slice.computed();
        self.slice.end(computed, polled.is_ready());
        polled
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the CPU time of this thread, in nanoseconds.
fn thread_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanos) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::task::yield_now;
    use tokio::time::timeout;

    use super::*;

    const A_WHILE: Duration = Duration::from_millis(20);

    /// Returns a slice that has just begun on this thread.
    fn begun() -> TimeSlice {
        let slice = TimeSlice::default();
        slice.begin();
        slice
    }

    #[test]
    fn a_slice_is_too_long_only_after_it_was_told_that_it_is_long() {
        let slice = begun();
        let until = |computed| while slice.computed() < computed {};
        assert_eq!(slice.length(), Length::Short);
        until(3 * LONG);
        assert_eq!((slice.length(), slice.length()), (Length::Long, Length::Long));
        until(slice.computed() + LONG + TICK);
        assert_eq!(slice.length(), Length::TooLong);
        slice.begin();
        assert_eq!(slice.length(), Length::Short);
    }

    fn compute() {
        let slice = begun();
        while slice.computed() < A_WHILE {}
    }

    #[tokio::test]
    async fn all_slices_of_a_call_count_and_each_begins_anew() {
        let slice = TimeSlice::default();
        let seen = slice.clone();
        let mut call = InSlices::new(
            async move {
                compute();
                yield_now().await;
                let before = seen.computed();
                compute();
                before
            },
            slice,
        );
        assert!((&mut call).await < A_WHILE);
        assert!(call.computed() >= 2 * A_WHILE);
    }

    #[tokio::test]
    async fn slices_that_end_at_once_count_as_well_as_long_ones() {
        let slice = TimeSlice::default();
        let seen = slice.clone();
        InSlices::new(
            async {
                for _ in 0..100 {
                    let spent = begun();
                    while spent.computed() < Duration::from_micros(100) {}
                    yield_now().await;
                }
                compute();
            },
            slice,
        )
        .await;
        let counted = seen.counted();
        assert!(counted >= Duration::from_millis(10) + TICK, "{counted:?}");
    }

    #[tokio::test]
    async fn a_long_slice_counts_for_a_tick() {
        let slice = TimeSlice::default();
        let seen = slice.clone();
        InSlices::new(async { compute() }, slice).await;
        // The time since its end counts as another slice.
        let counted = seen.counted();
        assert!((TICK..=2 * TICK).contains(&counted), "{counted:?}");
    }

    #[tokio::test]
    async fn a_call_that_lets_others_have_the_thread_waits_for_nothing_else() {
        for (lets_others, waits) in [(true, false), (false, true)] {
            let slice = TimeSlice::default();
            let (seen, inside) = (slice.clone(), slice.clone());
            let call = InSlices::new(
                poll_fn(move |_| {
                    if lets_others {
                        inside.let_others();
                    }
                    Poll::<()>::Pending
                }),
                slice,
            );
            assert!(!seen.waits(), "it has not begun");
            assert!(timeout(Duration::ZERO, call).await.is_err());
            assert_eq!(seen.waits(), waits);
        }
    }

    #[tokio::test]
    async fn neither_waiting_nor_what_other_threads_compute_counts() {
        let other = tokio::task::spawn_blocking(compute);
        let mut call = InSlices::new(other, TimeSlice::default());
        (&mut call).await.unwrap();
        assert!(call.computed() < A_WHILE, "{:?}", call.computed());
    }
}
