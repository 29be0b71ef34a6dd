//! A cache of identity providers' answers about tokens. At most one look-up per token runs at a time.

use std::num::NonZeroU32;
use std::time::Duration;

use moka::future::Cache;
use tokio::time::Instant;
use wasmspawner_core::users::identity::Group;
use wasmspawner_core::users::token::TokenDigest;

use super::AuthError;
use crate::connections::Block;
use wasmspawner_tasks::per_key::PerKey;
use wasmspawner_tasks::turns::Turns;

/// A cached answer about a token.
pub(super) trait Weighed {
    /// The size of the answer's texts, in bytes.
    fn bytes(&self) -> usize;
}

/// Returns the size of a user's cached data, in bytes: the groups, the display name and the mail address.
pub(super) fn bytes_of_user<'a>(
    groups: impl IntoIterator<Item = &'a Group>,
    texts: [&Option<String>; 2],
) -> usize {
    let groups: usize = groups.into_iter().map(|group| group.name.len() + 32).sum();
    groups + texts.into_iter().flatten().map(String::len).sum::<usize>()
}

/// Answers by token. A request with a token that is being looked up waits for that look-up. While the provider does not
/// answer, its last good answer about a token is used for a limited time.
pub(super) struct Lookups<V> {
    provider: &'static str,
    cached_for: Duration,
    answers: Cache<TokenDigest, Answer<V>>,
    turns: Turns,
    slots_of_address: PerKey<Block>,
}

#[derive(Clone)]
struct Answer<V> {
    /// The time at which the provider gave the answer.
    given_at: Instant,
    /// The time until which the provider is not asked again.
    fresh_until: Instant,
    result: Result<V, AuthError>,
}

/// The time for which a refusal is cached. It is short because the token may become valid.
const REFUSED_FOR: Duration = Duration::from_secs(5);
/// The pause before a provider that did not answer is asked about the same token again.
const PAUSE: Duration = Duration::from_secs(1);
/// The time for which an answer stays usable, after its normal lifetime, while the provider does not answer. A token
/// that was revoked in the meantime is accepted for this long.
const LAST_GOOD_FOR: Duration = Duration::from_mins(5);
/// The size limit of the cache, in bytes: about 40,000 answers. The limit is in bytes because a provider's answer about
/// one token may be long.
const MEMORY: u64 = 64 << 20;
/// The size of a cache entry without its texts, in bytes.
const ENTRY: usize = 1 << 10;
/// The limit on concurrent look-ups.
const MAX_LOOKUPS: usize = 64;
/// The time after which a provider is stuck, if no look-up ends.
const STUCK_AFTER: Duration = Duration::from_secs(5);
/// The limit on concurrent look-ups for one address. The Hub has one address, and answers one request after the other.
const PER_ADDRESS: NonZeroU32 = NonZeroU32::new(8).expect("it is not zero");

impl<V: Weighed + Clone + Send + Sync + 'static> Lookups<V> {
    /// Creates an empty cache that keeps the answers of `provider` for the duration `cached_for`.
    pub(super) fn new(provider: &'static str, cached_for: Duration) -> Self {
        let answers = Cache::builder()
            .max_capacity(MEMORY)
            .weigher(|_, answer: &Answer<V>| {
                let texts = answer.result.as_ref().map_or(0, Weighed::bytes);
                u32::try_from(ENTRY + texts).unwrap_or(u32::MAX)
            })
            .time_to_live(cached_for + LAST_GOOD_FOR)
            .build();
        Self {
            provider,
            cached_for,
            answers,
            turns: Turns::new(MAX_LOOKUPS, STUCK_AFTER),
            slots_of_address: PerKey::new(PER_ADDRESS),
        }
    }

    /// Returns the answer about `token`: the cached one, that of a look-up under way, or the result of `ask`. `from` is
    /// the sender's address; `None` for an address that many people share.
    pub(super) async fn get<A>(&self, token: TokenDigest, from: Option<Block>, ask: A) -> Result<V, AuthError>
    where
        A: Future<Output = Result<V, AuthError>> + Send,
    {
        let last = self.answers.get(&token).await;
        if let Some(last) = last.as_ref().filter(|last| last.is_fresh()) {
            return last.result.clone();
        }
        let look_up = async { self.next(last, self.in_turn(from, ask).await) };
        let entry = self.answers.entry(token).or_insert_with_if(look_up, |answer| !answer.is_fresh()).await;
        entry.into_value().result
    }

    async fn in_turn<A>(&self, from: Option<Block>, ask: A) -> Result<V, AuthError>
    where
        A: Future<Output = Result<V, AuthError>>,
    {
        let of_address = async {
            match &from {
                Some(from) => self.slots_of_address.take(from).await,
                None => None,
            }
        };
        match self.turns.take(of_address).await {
            Some(_turn) => ask.await,
            None => Err(AuthError::Unavailable(self.provider)),
        }
    }

    /// Returns the answer to cache after a look-up.
    fn next(&self, last: Option<Answer<V>>, result: Result<V, AuthError>) -> Answer<V> {
        let now = Instant::now();
        if matches!(result, Err(AuthError::Unavailable(_)))
            && let Some(last) = last
            && last.result.is_ok()
            && now - last.given_at < self.cached_for + LAST_GOOD_FOR
        {
            return Answer { fresh_until: now + PAUSE, ..last };
        }
        let keep = match result {
            Ok(_) => self.cached_for,
            Err(AuthError::Unavailable(_)) => PAUSE,
            Err(_) => REFUSED_FOR,
        };
        Answer { given_at: now, fresh_until: now + keep, result }
    }
}

impl<V> Answer<V> {
    fn is_fresh(&self) -> bool {
        Instant::now() < self.fresh_until
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::FutureExt;
    use futures::future::join_all;
    use tokio::sync::Notify;
    use tokio::time::{advance, timeout};

    use super::*;

    const CACHED_FOR: Duration = Duration::from_mins(1);
    const AWAY: AuthError = AuthError::Unavailable("the provider");

    impl Weighed for usize {
        fn bytes(&self) -> usize {
            0
        }
    }

    /// An answer of one mebibyte.
    #[derive(Clone)]
    struct Long;

    impl Weighed for Long {
        fn bytes(&self) -> usize {
            1 << 20
        }
    }

    #[tokio::test]
    async fn long_answers_take_the_places_of_others() {
        let lookups = Lookups::new("the provider", CACHED_FOR);
        for n in 0..500 {
            lookups.get(TokenDigest::from_token(&n.to_string()), None, async { Ok(Long) }).await.ok();
        }
        lookups.answers.run_pending_tasks().await;
        assert!(lookups.answers.entry_count() <= MEMORY >> 20, "{}", lookups.answers.entry_count());
    }

    fn lookups() -> Lookups<usize> {
        Lookups::new("the provider", CACHED_FOR)
    }

    async fn get(
        lookups: &Lookups<usize>,
        token: &str,
        answer: Result<usize, AuthError>,
    ) -> Result<usize, AuthError> {
        lookups.get(TokenDigest::from_token(token), None, async { answer }).await
    }

    #[tokio::test]
    async fn parallel_lookups_of_one_token_ask_once() {
        let (lookups, asked) = (lookups(), AtomicUsize::new(0));
        let ask = || async {
            let count = asked.fetch_add(1, Ordering::SeqCst) + 1;
            tokio::task::yield_now().await;
            Ok(count)
        };
        let answers =
            join_all((0..100).map(|_| lookups.get(TokenDigest::from_token("a"), None, ask()))).await;
        assert!(answers.iter().all(|answer| *answer == Ok(1)));
    }

    /// Columns: the first answer, the time until the second request, the provider's second answer, and the result of
    /// the second request.
    #[tokio::test(start_paused = true)]
    async fn answers_are_remembered_for_a_limited_time() {
        let refused = || Err(AuthError::UnknownToken);
        let long = CACHED_FOR + LAST_GOOD_FOR;
        let before = |time: Duration| time.saturating_sub(Duration::from_millis(1));
        for (first, later, second, expected) in [
            (Ok(1), before(CACHED_FOR), Ok(2), Ok(1)),
            (Ok(1), CACHED_FOR, Ok(2), Ok(2)),
            (Ok(1), CACHED_FOR, refused(), refused()),
            (refused(), before(REFUSED_FOR), Ok(2), refused()),
            (refused(), REFUSED_FOR, Ok(2), Ok(2)),
            (Err(AWAY), before(PAUSE), Ok(2), Err(AWAY)),
            (Err(AWAY), PAUSE, Ok(2), Ok(2)),
            // The provider is unavailable: its last good answer stays valid for some minutes, a refusal does not.
            (Ok(1), CACHED_FOR, Err(AWAY), Ok(1)),
            (Ok(1), before(long), Err(AWAY), Ok(1)),
            (Ok(1), long, Err(AWAY), Err(AWAY)),
            (refused(), REFUSED_FOR, Err(AWAY), Err(AWAY)),
        ] {
            let lookups = lookups();
            assert_eq!(get(&lookups, "a", first.clone()).await, first);
            advance(later).await;
            assert_eq!(
                get(&lookups, "a", second.clone()).await,
                expected,
                "{first:?}, {later:?}, {second:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_last_good_answer_ends_although_it_is_used_all_the_time() {
        let lookups = lookups();
        let began = Instant::now();
        get(&lookups, "a", Ok(1)).await.unwrap();
        while get(&lookups, "a", Err(AWAY)).await.is_ok() {
            advance(PAUSE).await;
        }
        assert_eq!(began.elapsed(), CACHED_FOR + LAST_GOOD_FOR);
    }

    #[tokio::test]
    async fn lookups_of_different_tokens_do_not_wait_for_each_other() {
        let (lookups, never) = (lookups(), Notify::new());
        let stuck = lookups.get(TokenDigest::from_token("stuck"), None, async {
            never.notified().await;
            Ok(0)
        });
        tokio::select! {
            _ = stuck => unreachable!(),
            answer = get(&lookups, "quick", Ok(7)) => assert_eq!(answer, Ok(7)),
        }
    }

    #[tokio::test]
    async fn a_cancelled_lookup_leaves_nothing_behind() {
        let (lookups, never) = (lookups(), Notify::new());
        for n in 0..MAX_LOOKUPS * 2 {
            let leaves = lookups.get(TokenDigest::from_token(&n.to_string()), None, async {
                never.notified().await;
                Ok(0)
            });
            assert!(leaves.now_or_never().is_none(), "it is asked, and does not wait for the answer");
        }
        lookups.answers.run_pending_tasks().await;
        assert_eq!((lookups.answers.entry_count(), lookups.turns.free()), (0, MAX_LOOKUPS));
        assert_eq!(get(&lookups, "0", Ok(2)).await, Ok(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_unknown_tokens_waits_for_its_turn_and_is_then_refused() {
        let (lookups, never, asked) = (lookups(), Notify::new(), AtomicUsize::new(0));
        let flood = (0..MAX_LOOKUPS + 10).map(|n| {
            let (never, asked) = (&never, &asked);
            let ask = async move {
                asked.fetch_add(1, Ordering::SeqCst);
                never.notified().await;
                Ok(0)
            };
            timeout(STUCK_AFTER * 2, lookups.get(TokenDigest::from_token(&n.to_string()), None, ask))
        });
        let answers = join_all(flood).await;
        assert_eq!(asked.load(Ordering::SeqCst), MAX_LOOKUPS);
        assert_eq!(
            answers.iter().filter(|answer| matches!(answer, Ok(Err(error)) if *error == AWAY)).count(),
            10
        );
    }

    /// A Hub that starts hundreds of labs at once answers slowly, and to one address.
    #[tokio::test(start_paused = true)]
    async fn look_ups_of_a_busy_hub_wait_for_as_long_as_it_answers() {
        let lookups = lookups();
        let from = Some(Block::from(std::net::IpAddr::from([192, 0, 2, 1])));
        let answers = join_all((0..300).map(|n: usize| {
            let ask = async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(n)
            };
            lookups.get(TokenDigest::from_token(&n.to_string()), from, ask)
        }))
        .await;
        assert!(answers.iter().all(Result::is_ok));
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_has_some_of_the_turns_and_others_have_theirs() {
        let (lookups, never, asked) = (lookups(), Notify::new(), AtomicUsize::new(0));
        let address = |last: u8| Some(Block::from(std::net::IpAddr::from([192, 0, 2, last])));
        let flood = join_all((0..MAX_LOOKUPS).map(|n| {
            let (never, asked) = (&never, &asked);
            let ask = async move {
                asked.fetch_add(1, Ordering::SeqCst);
                never.notified().await;
                Ok(0)
            };
            lookups.get(TokenDigest::from_token(&n.to_string()), address(1), ask)
        }));
        let other = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            lookups.get(TokenDigest::from_token("other"), address(2), async { Ok(7) }).await
        };
        tokio::select! {
            _ = flood => unreachable!("the look-ups of the flood never end"),
            answer = other => assert_eq!(answer, Ok(7)),
        }
        assert_eq!(asked.load(Ordering::SeqCst), 8);
    }
}
