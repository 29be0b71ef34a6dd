//! A cache of answers about tokens. At most one look-up per token runs at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::Instant;
use wasmspawner_core::token::TokenDigest;

use super::AuthError;

/// Answers by token. A request about a token that is being looked up waits for that look-up; requests about other
/// tokens do not wait. Only successful answers are kept: a token that was refused or could not be checked is looked up
/// again next time.
pub(super) struct Lookups<V> {
    cached_for: Duration,
    entries: Mutex<HashMap<TokenDigest, Arc<Lookup<V>>>>,
}

type Lookup<V> = OnceCell<(Instant, Result<V, AuthError>)>;

/// When a look-up is added and there are at least this many, those that are too old are removed.
const PRUNE_ABOVE: usize = 1024;

impl<V: Clone> Lookups<V> {
    /// Answers are kept for the duration `cached_for`.
    pub(super) fn new(cached_for: Duration) -> Self {
        Self { cached_for, entries: Mutex::default() }
    }

    /// The answer about `token`: the cached one, that of a look-up under way, or the result of `ask`.
    pub(super) async fn get<A>(&self, token: TokenDigest, ask: A) -> Result<V, AuthError>
    where
        A: Future<Output = Result<V, AuthError>>,
    {
        let lookup = self.current(token);
        let (_, answer) = lookup.get_or_init(|| async { (Instant::now(), ask.await) }).await;
        if answer.is_err() {
            self.forget(token, &lookup);
        }
        answer.clone()
    }

    /// The look-up to join: the present one, or a new one when that is too old.
    fn current(&self, token: TokenDigest) -> Arc<Lookup<V>> {
        let mut entries = self.lock();
        if let Some(lookup) = entries.get(&token).filter(|lookup| self.is_current(lookup)) {
            return Arc::clone(lookup);
        }
        if entries.len() >= PRUNE_ABOVE {
            entries.retain(|_, lookup| self.is_current(lookup));
        }
        let lookup = Arc::<Lookup<V>>::default();
        entries.insert(token, Arc::clone(&lookup));
        lookup
    }

    fn is_current(&self, lookup: &Lookup<V>) -> bool {
        lookup.get().is_none_or(|(asked_at, _)| asked_at.elapsed() < self.cached_for)
    }

    fn forget(&self, token: TokenDigest, lookup: &Arc<Lookup<V>>) {
        let mut entries = self.lock();
        if entries.get(&token).is_some_and(|present| Arc::ptr_eq(present, lookup)) {
            entries.remove(&token);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TokenDigest, Arc<Lookup<V>>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use futures::future::join_all;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Notify;

    const LONG: Duration = Duration::from_hours(1);

    fn lookups(cached_for: Duration) -> Lookups<usize> {
        Lookups::new(cached_for)
    }

    /// Counts how often it was asked, and answers with the count.
    #[derive(Default)]
    struct Oracle(AtomicUsize);

    impl Oracle {
        async fn ask(&self) -> Result<usize, AuthError> {
            let count = self.0.fetch_add(1, Ordering::SeqCst) + 1;
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            Ok(count)
        }
    }

    #[tokio::test]
    async fn parallel_lookups_of_one_token_ask_once() {
        let (lookups, oracle) = (lookups(LONG), Oracle::default());
        let answers = join_all((0..100).map(|_| lookups.get(TokenDigest::of("a"), oracle.ask()))).await;
        assert!(answers.iter().all(|answer| *answer == Ok(1)));
    }

    #[tokio::test]
    async fn an_answer_is_cached_for_a_limited_time() {
        for (cached_for, second) in [(LONG, 1), (Duration::ZERO, 2)] {
            let (lookups, oracle) = (lookups(cached_for), Oracle::default());
            assert_eq!(lookups.get(TokenDigest::of("a"), oracle.ask()).await, Ok(1));
            assert_eq!(lookups.get(TokenDigest::of("a"), oracle.ask()).await, Ok(second), "{cached_for:?}");
        }
    }

    #[tokio::test]
    async fn lookups_of_different_tokens_do_not_wait_for_each_other() {
        let (lookups, never) = (lookups(LONG), Notify::new());
        let stuck = lookups.get(TokenDigest::of("stuck"), async {
            never.notified().await;
            Ok(0)
        });
        let quick = lookups.get(TokenDigest::of("quick"), async { Ok(7) });
        tokio::select! {
            _ = stuck => unreachable!(),
            answer = quick => assert_eq!(answer, Ok(7)),
        }
    }

    #[tokio::test]
    async fn a_refusal_is_not_cached() {
        let lookups = lookups(LONG);
        let ask = |answer| lookups.get(TokenDigest::of("a"), async move { answer });
        assert_eq!(ask(Err(AuthError::UnknownToken)).await, Err(AuthError::UnknownToken));
        assert_eq!(ask(Ok(3)).await, Ok(3));
    }

    #[tokio::test]
    async fn a_cancelled_lookup_does_not_block_the_next_one() {
        let (lookups, oracle) = (lookups(LONG), Oracle::default());
        let leaves = lookups.get(TokenDigest::of("a"), oracle.ask());
        assert!(leaves.now_or_never().is_none(), "it is asked, and does not wait for the answer");
        assert_eq!(lookups.get(TokenDigest::of("a"), oracle.ask()).await, Ok(2));
    }
}
