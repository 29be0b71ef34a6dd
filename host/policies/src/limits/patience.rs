use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::errors::CallError;

/// The maximum time for retries. Without it, a policy that computes for ever on a busy machine would be retried for
/// ever: it looks like one that gets no CPU.
const MAX_PATIENCE: Duration = Duration::from_mins(1);
/// The pause before a retry.
const PAUSE: Duration = Duration::from_millis(500);

/// The time left for retries of calls that fail because of an overload. All calls for one purpose share it, so that
/// their number does not matter.
#[derive(Debug)]
pub struct Patience(Mutex<Duration>);

impl Patience {
    /// Allows retries for `time`, at most a minute.
    pub fn from_time(time: Duration) -> Self {
        Self(Mutex::new(time.min(MAX_PATIENCE)))
    }

    /// Allows no retries: each call is made once.
    pub fn none() -> Self {
        Self::from_time(Duration::ZERO)
    }

    /// Repeats a call until the answer is not an overload, or no time is left. Only the time of overloaded calls, and
    /// of the pauses after them, counts.
    pub async fn ask<T, F>(&self, mut question: impl FnMut() -> F) -> Result<T, CallError>
    where
        F: Future<Output = Result<T, CallError>>,
    {
        loop {
            let begun = Instant::now();
            match question().await {
                Err(error) if error.kind.is_overload() && self.is_left_after(begun.elapsed() + PAUSE) => {
                    tracing::warn!(policy = %error.policy, hook = %error.hook, kind = %error.kind, "a policy is asked again");
                    sleep(PAUSE).await;
                }
                answered => return answered,
            }
        }
    }

    fn is_left_after(&self, spent: Duration) -> bool {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *left = left.saturating_sub(spent);
        !left.is_zero()
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self::from_time(MAX_PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hook;
    use crate::errors::CallErrorKind;

    type Answer = fn() -> Result<(), CallErrorKind>;

    /// Returns the number of calls, and whether the last one was answered, for this sequence of answers. The last
    /// answer is repeated. Each call takes two seconds.
    async fn asked(patience: &Patience, answers: &[Answer]) -> (usize, bool) {
        let mut times = 0;
        let answered = patience
            .ask(|| {
                let answer = answers[times.min(answers.len() - 1)]();
                times += 1;
                async {
                    sleep(Duration::from_secs(2)).await;
                    answer.map_err(|kind| CallError {
                        policy: "busy".into(),
                        hook: Hook::new("quota.limits"),
                        kind,
                    })
                }
            })
            .await;
        (times, answered.is_ok())
    }

    const ANSWERED: Answer = || Ok(());
    const FULL: Answer = || Err(CallErrorKind::Overloaded(2_000));
    const NO_CPU: Answer = || Err(CallErrorKind::NoCpu(2_000));
    const TOO_LONG: Answer = || Err(CallErrorKind::Deadline(200));

    #[tokio::test(start_paused = true)]
    async fn an_overload_is_waited_for_and_nothing_else_is() {
        for (answers, expected) in [
            (&[ANSWERED][..], (1, true)),
            (&[FULL, NO_CPU, ANSWERED], (3, true)),
            (&[FULL, TOO_LONG], (2, false)),
            (&[NO_CPU], (24, false)),
        ] {
            assert_eq!(asked(&Patience::default(), answers).await, expected);
        }
        assert_eq!(asked(&Patience::from_time(Duration::from_mins(5)), &[NO_CPU]).await, (24, false));
        assert_eq!(asked(&Patience::none(), &[NO_CPU]).await, (1, false));
    }

    #[tokio::test(start_paused = true)]
    async fn all_calls_share_it_and_those_that_are_answered_cost_nothing() {
        let patience = Patience::from_time(Duration::from_secs(11));
        for _ in 0..100 {
            assert_eq!(asked(&patience, &[ANSWERED]).await, (1, true));
        }
        assert_eq!(asked(&patience, &[NO_CPU, FULL, ANSWERED]).await, (3, true));
        assert_eq!(asked(&patience, &[FULL]).await, (3, false));
        assert_eq!(asked(&patience, &[FULL]).await, (1, false));
    }
}
