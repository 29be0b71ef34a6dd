//! Policies are asked again when they could not answer because too much was asked at once.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::errors::{CallError, LoadError, LoadErrorKind};

/// For how long they are asked again. One that computes for ever on a busy machine looks the same.
const ASK_FOR: Duration = Duration::from_mins(1);
/// The pause before they are asked again.
const PAUSE: Duration = Duration::from_millis(500);

/// Why there is no answer.
pub trait NoAnswer: Display {
    /// Whether too much was asked at once, so that the same question may be answered in a moment.
    fn is_overload(&self) -> bool;
}

impl NoAnswer for CallError {
    fn is_overload(&self) -> bool {
        self.kind.is_overload()
    }
}

impl NoAnswer for LoadError {
    fn is_overload(&self) -> bool {
        self.kind.is_overload()
    }
}

impl NoAnswer for LoadErrorKind {
    fn is_overload(&self) -> bool {
        matches!(self, Self::Trial(kind) if kind.is_overload())
    }
}

/// Asks again while there is an overload, for a minute or as long as `within` allows.
pub async fn ask_again<T, E, F>(within: Option<Duration>, mut ask: impl FnMut() -> F) -> Result<T, E>
where
    E: NoAnswer,
    F: Future<Output = Result<T, E>>,
{
    let deadline = Instant::now() + within.map_or(ASK_FOR, |within| within.min(ASK_FOR));
    loop {
        match ask().await {
            Err(error) if error.is_overload() && Instant::now() + PAUSE < deadline => {
                tracing::warn!(%error, "a policy is asked again");
                sleep(PAUSE).await;
            }
            answered => return answered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wasm::errors::CallErrorKind;

    /// How often it is asked if these are the answers, of which the last one is repeated.
    async fn asked(within: Option<Duration>, answers: &[fn() -> Result<(), CallErrorKind>]) -> (usize, bool) {
        let mut times = 0;
        let answered = ask_again(within, || {
            let answer = answers[times.min(answers.len() - 1)]();
            times += 1;
            async { answer.map_err(LoadErrorKind::Trial) }
        })
        .await;
        (times, answered.is_ok())
    }

    #[tokio::test(start_paused = true)]
    async fn an_overload_is_waited_for_a_minute_at_most_and_nothing_else_is() {
        let (ok, full, no_cpu, wrong) = (
            || Ok(()),
            || Err(CallErrorKind::Overloaded(2_000)),
            || Err(CallErrorKind::NoCpu(2_000)),
            || Err(CallErrorKind::Deadline(200)),
        );
        assert_eq!(asked(None, &[ok]).await, (1, true));
        assert_eq!(asked(None, &[full, no_cpu, ok]).await, (3, true));
        assert_eq!(asked(None, &[full, wrong]).await, (2, false));
        assert_eq!(asked(None, &[no_cpu]).await, (120, false));
        assert_eq!(asked(Some(Duration::from_mins(5)), &[no_cpu]).await, (120, false));
        assert_eq!(asked(Some(Duration::from_secs(2)), &[no_cpu]).await, (4, false));
    }
}
