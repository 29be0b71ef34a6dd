//! A cache of the provider's keys.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::Instant;

use super::PROVIDER;
use super::endpoint::NoKeys;
use super::key_set::KeySet;
use crate::auth::AuthError;

/// The minimum time between two look-ups. It prevents tokens with random values of `kid` from causing a request to the
/// provider each time. A new key may be unknown for this long.
const PAUSE: Duration = Duration::from_secs(5);
/// The additional time for which the keys are used while the provider does not answer.
const LAST_GOOD_FOR: Duration = Duration::from_mins(5);

/// Keeps the keys, and reads them again when they are old or when one is missing. Only one look-up runs at a time. It
/// continues if the request that caused it is cancelled.
pub(super) struct KeyCache {
    cached_for: Duration,
    known: Arc<ArcSwap<Known>>,
    /// The time at which the last look-up ended, or began if it has not ended. The lock is held during a look-up.
    asked: Arc<Mutex<Option<Instant>>>,
}

/// The state of the provider's keys.
#[derive(Clone, Default)]
struct Known {
    keys: Arc<KeySet>,
    given_at: Option<Instant>,
    /// True if the last look-up failed.
    away: bool,
}

impl KeyCache {
    /// Creates an empty cache that keeps keys for the duration `cached_for`.
    pub(super) fn new(cached_for: Duration) -> Self {
        Self { cached_for, known: Arc::default(), asked: Arc::default() }
    }

    /// Returns the key set for checking a token. `has_key` returns whether a set has the token's key. If the keys are
    /// too old or that key is missing, they are read with `ask`.
    pub(super) async fn get<A>(
        &self,
        has_key: impl Fn(&KeySet) -> bool,
        ask: A,
    ) -> Result<Arc<KeySet>, AuthError>
    where
        A: Future<Output = Result<KeySet, NoKeys>> + Send + 'static,
    {
        let mut known = self.known.load_full();
        if !self.answers(&known, &has_key) {
            known = self.look_up(&has_key, ask).await;
        }
        let lacks = known.away && !has_key(&known.keys);
        if lacks || !known.is_younger(self.cached_for + LAST_GOOD_FOR) {
            return Err(AuthError::Unavailable(PROVIDER));
        }
        Ok(Arc::clone(&known.keys))
    }

    fn answers(&self, known: &Known, has_key: impl Fn(&KeySet) -> bool) -> bool {
        known.is_younger(self.cached_for) && has_key(&known.keys)
    }

    async fn look_up<A>(&self, has_key: impl Fn(&KeySet) -> bool, ask: A) -> Arc<Known>
    where
        A: Future<Output = Result<KeySet, NoKeys>> + Send + 'static,
    {
        let Some(asked) = self.turn(&has_key).await else { return self.known.load_full() };
        let known = self.known.load_full();
        let lately = asked.is_some_and(|at| at.elapsed() < PAUSE);
        if lately || self.answers(&known, &has_key) {
            return known;
        }
        // A separate task, because a request can be cancelled at any time.
        let look_up = tokio::spawn(read(ask, Arc::clone(&self.known), asked));
        if let Err(error) = look_up.await {
            tracing::error!(%error, "a look-up of the provider's keys ended without a result");
        }
        self.known.load_full()
    }

    /// Acquires the lock for a look-up. While another look-up runs, requests whose key is known do not wait and get
    /// `None`.
    async fn turn(&self, has_key: impl Fn(&KeySet) -> bool) -> Option<OwnedMutexGuard<Option<Instant>>> {
        let known = self.known.load();
        let asked = Arc::clone(&self.asked);
        if known.is_younger(self.cached_for + LAST_GOOD_FOR) && has_key(&known.keys) {
            return asked.try_lock_owned().ok();
        }
        Some(asked.lock_owned().await)
    }
}

async fn read<A>(ask: A, known: Arc<ArcSwap<Known>>, mut asked: OwnedMutexGuard<Option<Instant>>)
where
    A: Future<Output = Result<KeySet, NoKeys>>,
{
    *asked = Some(Instant::now());
    let next = match ask.await {
        Ok(keys) => Known { keys: Arc::new(keys), given_at: Some(Instant::now()), away: false },
        Err(error) => {
            tracing::warn!(%error, cause = ?error.source(), "the OpenID Connect provider's keys cannot be read");
            Known { away: true, ..Known::clone(&known.load()) }
        }
    };
    known.store(Arc::new(next));
    *asked = Some(Instant::now());
}

impl Known {
    fn is_younger(&self, age: Duration) -> bool {
        self.given_at.is_some_and(|at| at.elapsed() < age)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::FutureExt;
    use futures::future::join_all;
    use jsonwebtoken::Algorithm;
    use serde_json::json;
    use tokio::sync::Notify;
    use tokio::time::advance;

    use super::*;

    const CACHED_FOR: Duration = Duration::from_mins(10);
    const AWAY: AuthError = AuthError::Unavailable(PROVIDER);

    fn keys(ids: &[&str]) -> KeySet {
        let key = |id: &&str| json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" });
        let keys: Vec<_> = ids.iter().map(key).collect();
        KeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
    }

    fn away() -> Result<KeySet, NoKeys> {
        Err(NoKeys::TooLarge)
    }

    /// Returns whether the key `id` is known, with this answer from the provider if it is asked.
    async fn has(cache: &KeyCache, id: &str, answer: Result<KeySet, NoKeys>) -> Result<bool, AuthError> {
        let knows = |set: &KeySet| set.knows(Some(id), Algorithm::EdDSA);
        cache.get(knows, async { answer }).await.map(|set| knows(&set))
    }

    /// Columns: the time between the first answer and a token, the token's `kid`, the provider's answer at that time,
    /// and the result for the token.
    #[tokio::test(start_paused = true)]
    async fn keys_are_read_again_when_they_are_old_or_lack_one() {
        let long = CACHED_FOR + LAST_GOOD_FOR;
        let before = |time: Duration| time.saturating_sub(Duration::from_millis(1));
        for (later, id, answer, expected) in [
            (before(CACHED_FOR), "a", Ok(keys(&["b"])), Ok(true)),
            (CACHED_FOR, "a", Ok(keys(&["b"])), Ok(false)),
            (CACHED_FOR, "b", Ok(keys(&["b"])), Ok(true)),
            // A key that the set lacks.
            (before(PAUSE), "b", Ok(keys(&["a", "b"])), Ok(false)),
            (PAUSE, "b", Ok(keys(&["a", "b"])), Ok(true)),
            // The provider is unavailable: known keys stay valid for some minutes, and other keys cannot be checked.
            (PAUSE, "b", away(), Err(AWAY)),
            (CACHED_FOR, "a", away(), Ok(true)),
            (before(long), "a", away(), Ok(true)),
            (long, "a", away(), Err(AWAY)),
        ] {
            let cache = KeyCache::new(CACHED_FOR);
            assert_eq!(has(&cache, "a", Ok(keys(&["a"]))).await, Ok(true));
            advance(later).await;
            let shown = answer.is_ok();
            assert_eq!(has(&cache, id, answer).await, expected, "{later:?} {id} {shown}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_provider_that_was_never_reached_is_asked_again_after_a_pause() {
        let cache = KeyCache::new(CACHED_FOR);
        assert_eq!(has(&cache, "a", away()).await, Err(AWAY));
        assert_eq!(has(&cache, "a", Ok(keys(&["a"]))).await, Err(AWAY));
        advance(PAUSE).await;
        assert_eq!(has(&cache, "a", Ok(keys(&["a"]))).await, Ok(true));
    }

    #[tokio::test(start_paused = true)]
    async fn random_kids_cause_one_look_up_in_each_pause() {
        let (cache, asked) = (KeyCache::new(CACHED_FOR), Arc::new(AtomicUsize::new(0)));
        for round in 1..=3 {
            let flood = (0..100).map(|n| {
                let asked = Arc::clone(&asked);
                cache.get(move |set| set.knows(Some(&format!("{round}-{n}")), Algorithm::EdDSA), async move {
                    asked.fetch_add(1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    Ok(keys(&["a"]))
                })
            });
            assert!(join_all(flood).await.iter().all(Result::is_ok));
            assert_eq!(asked.load(Ordering::SeqCst), round);
            assert_eq!(has(&cache, "a", away()).await, Ok(true), "other tokens do not suffer");
            advance(PAUSE).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_up_goes_on_when_its_request_is_given_up() {
        let (cache, answer) = (KeyCache::new(CACHED_FOR), Arc::new(Notify::new()));
        let told = Arc::clone(&answer);
        let given_up = cache.get(|_| false, async move {
            told.notified().await;
            Ok(keys(&["a"]))
        });
        assert!(given_up.now_or_never().is_none(), "it waits for the provider");
        answer.notify_one();
        assert_eq!(has(&cache, "a", away()).await, Ok(true), "the first look-up has found the key");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_provider_holds_up_no_token_with_a_known_key() {
        let cache = KeyCache::new(CACHED_FOR);
        assert_eq!(has(&cache, "a", Ok(keys(&["a"]))).await, Ok(true));
        advance(CACHED_FOR).await;
        let stuck = cache.get(|_| false, std::future::pending());
        tokio::select! {
            biased;
            _ = stuck => unreachable!(),
            () = tokio::task::yield_now() => {}
        }
        assert_eq!(has(&cache, "a", away()).now_or_never(), Some(Ok(true)));
    }
}
