//! Turns of calls that compute for long, so that they never have all threads of the service at the same time.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::PollSemaphore;

/// A call that computes for longer than this at a time is a long one. Most policies answer in a tenth of it.
const LONG: Duration = Duration::from_micros(200);

/// The threads of the service that long calls may have at the same time: all but one. Short calls, and the API, have that one.
#[derive(Clone)]
pub(super) struct Threads(Arc<Semaphore>);

/// Whether the calls of a policy are long ones. It is known from the last one.
#[derive(Debug, Default)]
pub(super) struct Pace {
    is_slow: AtomicBool,
}

impl Threads {
    /// Those of the present runtime.
    pub(super) fn of_runtime() -> Self {
        let workers = Handle::try_current().map_or(1, |runtime| runtime.metrics().num_workers());
        Self(Arc::new(Semaphore::new(workers.saturating_sub(1).max(1))))
    }

    /// The call, which waits for a thread each time before it computes: from the first time if the calls of its policy are long
    /// ones, and else once it has computed for long.
    pub(super) fn call<'a, F: Future>(&self, call: F, pace: &'a Pace) -> InTurns<'a, F> {
        let wants_thread = pace.is_slow.load(Ordering::Relaxed);
        InTurns {
            call: Box::pin(call),
            threads: PollSemaphore::new(Arc::clone(&self.0)),
            pace,
            wants_thread,
            longest: Duration::ZERO,
        }
    }
}

/// A call in turns.
pub(super) struct InTurns<'a, F> {
    call: Pin<Box<F>>,
    threads: PollSemaphore,
    pace: &'a Pace,
    wants_thread: bool,
    /// The longest time for which it has computed.
    longest: Duration,
}

impl<F: Future> Future for InTurns<'_, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        // A semaphore that is never closed always gives a permit in the end.
        let turn = if this.wants_thread { ready!(this.threads.poll_acquire(cx)) } else { None };
        let begun = Instant::now();
        let answer = this.call.as_mut().poll(cx);
        drop(turn);
        this.longest = this.longest.max(begun.elapsed());
        let is_long = this.longest > LONG;
        this.wants_thread |= is_long;
        // A call that is given up is never ready.
        if is_long || answer.is_ready() {
            this.pace.is_slow.store(is_long, Ordering::Relaxed);
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use tokio::task::yield_now;

    use super::*;

    /// Computes for longer than [`LONG`], so often, and says how many do so at the same time.
    async fn compute(times: u32, now: Arc<AtomicU32>, most: Arc<AtomicU32>) {
        for _ in 0..times {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let begun = Instant::now();
            while begun.elapsed() <= 2 * LONG {
                std::hint::spin_loop();
            }
            now.fetch_sub(1, Ordering::SeqCst);
            yield_now().await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn long_calls_leave_a_thread_to_others() {
        let threads = Threads::of_runtime();
        let pace = Arc::new(Pace::default());
        let (now, most) = <(Arc<AtomicU32>, Arc<AtomicU32>)>::default();
        // The first call tells that the others are long, too.
        threads.call(compute(2, Arc::clone(&now), Arc::clone(&most)), &pace).await;
        assert!(pace.is_slow.load(Ordering::Relaxed));
        most.store(0, Ordering::SeqCst);
        let calls = (0..16).map(|_| {
            let (threads, pace, now, most) =
                (threads.clone(), Arc::clone(&pace), Arc::clone(&now), Arc::clone(&most));
            tokio::spawn(async move { threads.call(compute(5, now, most), &pace).await })
        });
        futures::future::join_all(calls).await;
        let most = most.load(Ordering::SeqCst);
        assert!((1..=3).contains(&most), "{most} of 4 threads");
    }

    #[tokio::test]
    async fn one_thread_is_enough_for_all() {
        let threads = Threads::of_runtime();
        let pace = Pace::default();
        let (now, most) = <(Arc<AtomicU32>, Arc<AtomicU32>)>::default();
        let calls = (0..3).map(|_| threads.call(compute(2, Arc::clone(&now), Arc::clone(&most)), &pace));
        futures::future::join_all(calls).await;
        assert_eq!(most.load(Ordering::SeqCst), 1);
    }
}
