//! For how long calls compute. What other threads and programs do meanwhile does not count.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The time since a call has had a thread. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Turn {
    /// What the thread had computed then, in nanoseconds.
    begun: Arc<AtomicU64>,
}

impl Turn {
    /// Begins on this thread.
    pub(super) fn begin(&self) {
        self.begun.store(thread_time(), Ordering::Relaxed);
    }

    /// For how long the call has computed in this turn. For the thread that makes it.
    pub(super) fn computed(&self) -> Duration {
        Duration::from_nanos(thread_time().saturating_sub(self.begun.load(Ordering::Relaxed)))
    }
}

/// A call that is made in turns. A turn ends when the call waits for something, or lets others have the thread.
pub(super) struct InTurns<F> {
    call: Pin<Box<F>>,
    turn: Turn,
    computed: Duration,
}

impl<F: Future> InTurns<F> {
    pub(super) fn new(call: F, turn: Turn) -> Self {
        Self { call: Box::pin(call), turn, computed: Duration::ZERO }
    }

    /// For how long it has computed in all turns that have ended.
    pub(super) fn computed(&self) -> Duration {
        self.computed
    }
}

impl<F: Future> Future for InTurns<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.turn.begin();
        let polled = self.call.as_mut().poll(cx);
        let computed = self.turn.computed();
        self.computed += computed;
        polled
    }
}

/// How long this thread has had a CPU, in nanoseconds.
fn thread_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanos) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

#[cfg(test)]
mod tests {
    use tokio::task::yield_now;

    use super::*;

    const A_WHILE: Duration = Duration::from_millis(20);

    fn compute() {
        let turn = Turn::default();
        turn.begin();
        while turn.computed() < A_WHILE {}
    }

    #[tokio::test]
    async fn all_turns_of_a_call_count_and_each_begins_anew() {
        let turn = Turn::default();
        let seen = turn.clone();
        let mut call = InTurns::new(
            async move {
                compute();
                yield_now().await;
                let before = seen.computed();
                compute();
                before
            },
            turn,
        );
        assert!((&mut call).await < A_WHILE);
        assert!(call.computed() >= 2 * A_WHILE);
    }

    #[tokio::test]
    async fn neither_waiting_nor_what_other_threads_compute_counts() {
        let other = tokio::task::spawn_blocking(compute);
        let mut call = InTurns::new(other, Turn::default());
        (&mut call).await.unwrap();
        assert!(call.computed() < A_WHILE, "{:?}", call.computed());
    }
}
