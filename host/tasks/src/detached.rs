//! Work that goes on when its caller goes away, such as a client that closes its connection.

use std::future::pending;
use std::panic::resume_unwind;

use tokio::task::JoinError;
use tracing::Instrument;

/// Runs `work` to its end, even if the returned future is dropped.
pub async fn detached<F>(work: F) -> F::Output
where
    F: Future<Output: Send> + Send + 'static,
{
    output_of(tokio::spawn(work.in_current_span())).await
}

/// Returns the output of a task. Resumes a panic of the task in the caller.
pub async fn output_of<T>(task: impl Future<Output = Result<T, JoinError>>) -> T {
    match task.await {
        Ok(output) => output,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // A task is aborted only when no caller waits for it, or when its runtime shuts down.
            Err(_) => pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn it_is_done_although_nobody_waits_any_more() {
        let (go, wait) = oneshot::channel::<()>();
        let (done, is_done) = oneshot::channel();
        let work = detached(async move {
            let _ = wait.await;
            let _ = done.send(());
        });
        assert!(tokio::time::timeout(Duration::from_millis(1), work).await.is_err());
        go.send(()).unwrap();
        tokio::time::timeout(Duration::from_mins(1), is_done).await.unwrap().unwrap();
    }

    #[tokio::test]
    #[should_panic(expected = "of the work")]
    async fn a_panic_is_that_of_who_waits() {
        detached(async { panic!("of the work") }).await;
    }
}
