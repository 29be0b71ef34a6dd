//! Retries requests until a deadline.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::KubernetesError;
use super::error::is_transient;
use super::fault_point::reached;

/// The time limits of requests and their retries.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    /// The time limit of one request.
    pub request: Duration,
    /// The time limit of all attempts together.
    pub total: Duration,
    /// Ends the attempts early.
    pub cancel: CancellationToken,
}

impl RetryPolicy {
    /// Waits for `pause`. Fails if the operation is cancelled meanwhile.
    pub(super) async fn pause(&self, pause: Duration) -> Result<(), KubernetesError> {
        tokio::select! {
            () = tokio::time::sleep(pause) => Ok(()),
            () = self.cancel.cancelled() => Err(KubernetesError::Cancelled),
        }
    }

    /// A policy that cannot be cancelled.
    pub fn from_timeouts(request: Duration, total: Duration) -> Self {
        Self { request, total, cancel: CancellationToken::new() }
    }

    /// A policy with a minute in all, for requests that are not part of an operation with a time limit of its own.
    pub(super) fn for_a_minute(request: Duration) -> Self {
        Self::from_timeouts(request, Duration::from_mins(1))
    }
}

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// Repeats `call` until it succeeds, its error is final, the time is over, or the operation is cancelled. The call must
/// be idempotent: an earlier attempt may have succeeded although its answer was lost.
pub async fn retrying<T, F>(
    retry_policy: &RetryPolicy,
    action: &str,
    mut call: impl FnMut() -> F,
) -> Result<T, KubernetesError>
where
    F: Future<Output = kube::Result<T>>,
{
    let deadline = Instant::now() + retry_policy.total;
    let mut pause = FIRST_PAUSE;
    loop {
        if retry_policy.cancel.is_cancelled() {
            return Err(KubernetesError::Cancelled);
        }
        reached(|| format!("before {action}"));
        // A request may wait for the rate limiter longer than its own time limit, but not longer than the operation
        // lasts.
        let limit = retry_policy.request.max(deadline.saturating_duration_since(Instant::now()));
        let answer = tokio::time::timeout(limit, call()).await;
        reached(|| format!("after {action}"));
        let error = match answer {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => error,
            Err(elapsed) => kube::Error::Service(elapsed.into()),
        };
        if !is_transient(&error) || Instant::now() + pause >= deadline {
            return Err(KubernetesError::from_client(action, error));
        }
        tracing::debug!(action, %error, ?pause, "trying again");
        retry_policy.pause(pause).await?;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry_policy() -> RetryPolicy {
        RetryPolicy {
            request: Duration::from_secs(1),
            total: Duration::from_secs(10),
            cancel: CancellationToken::new(),
        }
    }

    fn refusal(code: u16, message: &str) -> kube::Error {
        let mut status = kube::core::Status::failure(message, "Reason");
        status.code = code;
        kube::Error::Api(status.boxed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_to_a_busy_server_is_retried() {
        let mut answers = vec![Ok(7), Err(refusal(429, "busy")), Err(refusal(503, "starting"))];
        let answer = retrying(&retry_policy(), "ask", || std::future::ready(answers.pop().unwrap())).await;
        assert_eq!(answer.unwrap(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn a_permanent_refusal_is_not_retried() {
        let mut asked = 0;
        let answer: Result<(), _> = retrying(&retry_policy(), "ask", || {
            asked += 1;
            std::future::ready(Err(refusal(422, "bad")))
        })
        .await;
        assert_eq!((asked, answer.unwrap_err().reason().to_owned()), (1, "Reason".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_without_an_answer_is_unavailable_after_the_total_time() {
        let begun = Instant::now();
        let answer: Result<(), _> = retrying(&retry_policy(), "ask", std::future::pending).await;
        assert!(matches!(answer.unwrap_err(), KubernetesError::Unavailable(_)));
        assert!(begun.elapsed() <= Duration::from_secs(11));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_operation_is_not_retried() {
        let retry_policy = retry_policy();
        retry_policy.cancel.cancel();
        let answer: Result<(), _> = retrying(&retry_policy, "ask", std::future::pending).await;
        assert!(matches!(answer.unwrap_err(), KubernetesError::Cancelled));
    }
}
