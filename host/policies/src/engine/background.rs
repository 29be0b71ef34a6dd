//! Threads of low priority for long computations, so that short calls and the API need not wait for them.

use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;
use tracing::instrument::WithSubscriber;

use crate::errors::EngineError;
use crate::limits::time_slice::InSlices;
use wasmspawner_tasks::detached::output_of;

/// The computing time after which a call counts as long. Most policies answer in a tenth of it.
const LONG: Duration = Duration::from_micros(200);
/// The nice value added for these threads. With it, they get a tenth of a busy CPU, and all of an idle one.
const NICER: i32 = 10;

/// A pool of background threads, one for each CPU. Dropping it ends the threads and cancels their work.
pub(crate) struct Background(Option<Runtime>);

/// The pace of a policy's calls. The next call is expected to be long if the last one was.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    is_long: AtomicBool,
}

impl Background {
    pub(crate) fn new() -> Result<Self, EngineError> {
        let threads = available_parallelism().map_or(1, usize::from);
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("policy-background")
            .on_thread_start(be_nice)
            .enable_all()
            .build()
            .map_err(EngineError::Threads)?;
        Ok(Self(Some(runtime)))
    }

    /// Runs `work` in the background. Cancels it if the caller stops waiting.
    pub(crate) async fn run<F>(&self, work: F) -> F::Output
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let Some(runtime) = &self.0 else { return pending().await };
        let work = work.in_current_span().with_current_subscriber();
        output_of(AbortOnDropHandle::new(runtime.spawn(work))).await
    }

    /// Runs `work` that also computes between its await points, in the background on a thread of its own. Cancels it at
    /// its next await point if the caller stops waiting.
    pub(crate) async fn load<F>(&self, work: F) -> F::Output
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let Some(runtime) = &self.0 else { return pending().await };
        let given_up = CancellationToken::new();
        let _give_up = given_up.clone().drop_guard();
        let (threads, work) = (runtime.handle().clone(), work.in_current_span().with_current_subscriber());
        let load = move || threads.block_on(given_up.run_until_cancelled_owned(work));
        match output_of(runtime.spawn_blocking(load)).await {
            Some(output) => output,
            None => pending().await,
        }
    }

    /// Makes a call of a policy. If the policy's last call was long, the call runs in the background. Otherwise it runs
    /// here, and moves to the background once it has computed for long.
    pub(crate) async fn call<F>(&self, mut call: InSlices<F>, pace: &Pace) -> F::Output
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let short = if pace.is_long.load(Ordering::Relaxed) { None } else { while_short(&mut call).await };
        let (answer, computed) = if let Some(answer) = short {
            (answer, call.computed())
        } else {
            // The call may be cancelled, and must count as long all the same.
            pace.is_long.store(true, Ordering::Relaxed);
            self.run(async move { ((&mut call).await, call.computed()) }).await
        };
        pace.is_long.store(computed > LONG, Ordering::Relaxed);
        answer
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Lowers the priority of this thread, and of the programs that it starts, such as the compiler.
fn be_nice() {
    if let Err(error) = rustix::process::nice(NICER) {
        tracing::debug!(%error, "long calls of policies have the priority of short ones");
    }
}

/// Returns the answer, or `None` as soon as the call counts as long.
async fn while_short<F: Future>(call: &mut InSlices<F>) -> Option<F::Output> {
    poll_fn(|cx| match Pin::new(&mut *call).poll(cx) {
        Poll::Ready(answer) => Poll::Ready(Some(answer)),
        Poll::Pending if call.computed() > LONG => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::thread;

    use tokio::sync::Notify;
    use tokio::task::yield_now;

    use super::*;
    use crate::limits::time_slice::TimeSlice;

    /// Computes for longer than [`LONG`], `times` times. Returns the names of the threads on which it ran.
    async fn compute(times: u32) -> Vec<String> {
        let mut threads = Vec::new();
        for _ in 0..times {
            let slice = TimeSlice::default();
            slice.begin();
            while slice.computed() <= 2 * LONG {}
            threads.push(thread::current().name().unwrap_or_default().to_owned());
            yield_now().await;
        }
        threads
    }

    fn in_slices<F: Future>(call: F) -> InSlices<F> {
        InSlices::new(call, TimeSlice::default())
    }

    fn in_background(threads: &[String]) -> Vec<bool> {
        threads.iter().map(|name| name == "policy-background").collect()
    }

    #[tokio::test]
    async fn a_call_that_computes_for_long_goes_on_in_the_background_and_the_next_one_begins_there() {
        let (background, pace) = (Background::new().unwrap(), Pace::default());
        assert_eq!(in_background(&background.call(in_slices(compute(3)), &pace).await), [false, true, true]);
        assert_eq!(in_background(&background.call(in_slices(compute(2)), &pace).await), [true, true]);
    }

    #[tokio::test]
    async fn short_calls_are_made_here_and_one_after_a_long_one_is_the_last_in_the_background() {
        let (background, pace) = (Background::new().unwrap(), Pace::default());
        let here = thread::current().id();
        let short = || background.call(in_slices(async { thread::current().id() }), &pace);
        assert_eq!(short().await, here);
        background.call(in_slices(compute(1)), &pace).await;
        assert_ne!(short().await, here);
        assert_eq!(short().await, here);
    }

    #[tokio::test]
    async fn a_long_call_that_is_given_up_is_known_as_one() {
        let (background, pace) = (Background::new().unwrap(), Pace::default());
        let computed = Arc::new(Notify::new());
        let told = Arc::clone(&computed);
        let given_up = in_slices(async move {
            compute(1).await;
            told.notify_one();
            pending::<()>().await;
        });
        tokio::select! {
            () = background.call(given_up, &pace) => panic!("it never ends"),
            () = computed.notified() => {}
        }
        assert_eq!(in_background(&background.call(in_slices(compute(1)), &pace).await), [true]);
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_is_given_up() {
        let background = Background::new().unwrap();
        let forever = || {
            let (alive, ended) = tokio::sync::oneshot::channel::<()>();
            let work = async move {
                let _alive = alive;
                pending::<()>().await;
            };
            (work, ended)
        };
        let ((work, ended), (load, load_ended)) = (forever(), forever());
        assert!(tokio::time::timeout(Duration::from_millis(1), background.run(work)).await.is_err());
        assert!(tokio::time::timeout(Duration::from_millis(1), background.load(load)).await.is_err());
        for ended in [ended, load_ended] {
            assert!(tokio::time::timeout(Duration::from_mins(1), ended).await.unwrap().is_err());
        }
    }

    #[tokio::test]
    async fn a_load_that_never_pauses_keeps_no_long_call_waiting() {
        let background = Background::new().unwrap();
        let (ended, end) = std::sync::mpsc::channel::<()>();
        let end = Arc::new(Mutex::new(end));
        let as_many_as_threads = 0..available_parallelism().unwrap().get();
        let stuck = as_many_as_threads.map(|_| {
            let end = Arc::clone(&end);
            background.load(async move { end.lock().unwrap().recv().is_err() })
        });
        let call = async {
            let done = background.run(async { true }).await;
            drop(ended);
            done
        };
        let (stuck, done) = tokio::join!(futures::future::join_all(stuck), call);
        assert!(done && stuck.into_iter().all(|ended| ended));
    }

    #[tokio::test]
    #[should_panic(expected = "in the background")]
    async fn a_panic_is_that_of_who_waits() {
        Background::new().unwrap().run(async { panic!("in the background") }).await;
    }

    #[tokio::test]
    async fn its_threads_have_a_lower_priority() {
        let priority = || rustix::process::getpriority_process(None).unwrap();
        let background = Background::new().unwrap().run(async move { priority() }).await;
        assert_eq!(background, (priority() + NICER).min(19));
    }
}
