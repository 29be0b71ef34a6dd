//! Limits the rate of requests to the Kubernetes API, and lets the urgent ones go first.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tower::service_fn;

use super::fair_queue::FairQueue;
use wasmspawner_telemetry::Metrics;

tokio::task_local! {
    /// Marks a task whose requests can wait.
    static IN_BACKGROUND: ();
}

/// Runs `work` so that its requests go after all others. Requests of tasks that `work` spawns are not included.
pub async fn in_background<W: Future>(work: W) -> W::Output {
    IN_BACKGROUND.scope((), work).await
}

/// Limits the client to `per_second` requests per second. After a quiet second, as many may be sent at once. The time
/// that each request waits is recorded in `metrics`.
pub(super) fn rate_limited(client: Client, per_second: NonZeroU32, metrics: Metrics) -> Client {
    let namespace = client.default_namespace().to_owned();
    let rate_limiter = RateLimiter::new(per_second);
    let service = service_fn(move |request: Request<Body>| {
        let (client, rate_limiter, metrics) = (client.clone(), rate_limiter.clone(), metrics.clone());
        async move {
            let asked = Instant::now();
            rate_limiter.wait_turn(Urgency::from_request(&request)).await;
            metrics.kubernetes_queued(asked.elapsed());
            let answer = client.send(request).await;
            if let Some(pause) = answer.as_ref().ok().and_then(retry_after) {
                rate_limiter.hold(pause);
            }
            answer
        }
    });
    Client::new(service, namespace)
}

/// Returns the time that the API server asks clients to wait because it is overloaded: `Retry-After` of a 429.
fn retry_after<B>(answer: &Response<B>) -> Option<Duration> {
    let too_many = answer.status() == StatusCode::TOO_MANY_REQUESTS;
    let seconds: u64 = answer.headers().get(RETRY_AFTER).filter(|_| too_many)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_HOLD))
}

/// The longest time for which requests are held back, whatever `Retry-After` says.
const MAX_HOLD: Duration = Duration::from_secs(30);

/// Every sixteenth turn goes to the least urgent requests, so that lists are not delayed for ever while hundreds of
/// labs start.
const LEAST_URGENT_EVERY: u32 = 16;

/// The order in which waiting requests are sent, most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Urgency {
    /// Deletions: they end labs and so reduce the load of the cluster.
    Stop,
    /// Creation of a lab's pod: all other objects of the lab exist already.
    Pod,
    /// All other requests; usually a user waits for them.
    Spawn,
    /// Creation of a lab's first object. It comes after the others, so that labs that were begun are finished first.
    Namespace,
    /// Lists, which serve the whole service and not one lab, and work that is done in advance.
    Housekeeping,
}

impl Urgency {
    fn from_request(request: &Request<Body>) -> Self {
        let lists = || request.uri().query().is_some_and(|query| query.contains("limit="));
        match *request.method() {
            _ if IN_BACKGROUND.try_with(|()| ()).is_ok() => Self::Housekeeping,
            Method::DELETE => Self::Stop,
            Method::GET if lists() => Self::Housekeeping,
            Method::POST if request.uri().path().ends_with("/pods") => Self::Pod,
            Method::POST if request.uri().path().ends_with("/namespaces") => Self::Namespace,
            _ => Self::Spawn,
        }
    }
}

/// A token bucket. It holds the tokens of one second.
#[derive(Clone)]
struct RateLimiter {
    bucket: Arc<Mutex<Bucket>>,
}

struct Bucket {
    /// The time between two requests at the full rate.
    interval: Duration,
    /// The time at which the bucket will be full. Until then it lacks one token per `interval`.
    full_at: Instant,
    /// No request is sent before this time.
    held_until: Instant,
    /// The waiting requests by urgency. A single task lets them proceed.
    waiting: [FairQueue; 5],
    served: bool,
    turns: u32,
}

impl RateLimiter {
    fn new(per_second: NonZeroU32) -> Self {
        let bucket = Bucket {
            interval: Duration::from_secs(1) / per_second.get(),
            full_at: Instant::now(),
            held_until: Instant::now(),
            waiting: Default::default(),
            served: false,
            turns: 0,
        };
        Self { bucket: Arc::new(Mutex::new(bucket)) }
    }

    /// Holds all requests back for `pause`.
    fn hold(&self, pause: Duration) {
        let mut bucket = self.bucket();
        bucket.held_until = bucket.held_until.max(Instant::now() + pause);
    }

    /// Waits until a request of this urgency may be sent.
    async fn wait_turn(&self, urgency: Urgency) {
        let turn = {
            let mut bucket = self.bucket();
            if !bucket.served && bucket.take(Instant::now()).is_ok() {
                return;
            }
            let (go, turn) = oneshot::channel();
            bucket.waiting[urgency as usize].push(go);
            if !std::mem::replace(&mut bucket.served, true) {
                tokio::spawn(self.clone().serve());
            }
            turn
        };
        // The serving task ends only when no request is waiting, so the sender is not dropped.
        let _ = turn.await;
    }

    /// Lets waiting requests proceed, one after the other, until none is left.
    async fn serve(self) {
        loop {
            let ready_at = {
                let mut bucket = self.bucket();
                if bucket.waiting.iter().all(FairQueue::is_empty) {
                    bucket.served = false;
                    return;
                }
                match bucket.take(Instant::now()) {
                    Ok(()) => {
                        bucket.release_next();
                        continue;
                    }
                    Err(ready_at) => ready_at,
                }
            };
            tokio::time::sleep_until(ready_at).await;
        }
    }

    fn bucket(&self) -> MutexGuard<'_, Bucket> {
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bucket {
    /// Takes a token, or returns the time at which there will be one.
    fn take(&mut self, now: Instant) -> Result<(), Instant> {
        if now < self.held_until {
            return Err(self.held_until);
        }
        let owed_from = self.full_at.max(now);
        let would_be_full_at = owed_from + self.interval;
        let latest = now + Duration::from_secs(1);
        if would_be_full_at > latest {
            return Err(now + (would_be_full_at - latest));
        }
        self.full_at = would_be_full_at;
        Ok(())
    }

    /// Lets the most urgent waiting request proceed; every `LEAST_URGENT_EVERY`th time, the least urgent one.
    fn release_next(&mut self) {
        self.turns = self.turns.wrapping_add(1);
        let least_first = self.turns.is_multiple_of(LEAST_URGENT_EVERY);
        let count = self.waiting.len();
        for index in 0..count {
            if self.waiting[if least_first { count - 1 - index } else { index }].release_next() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate_limiter(per_second: u32) -> RateLimiter {
        RateLimiter::new(NonZeroU32::new(per_second).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_sent_at_once_and_the_rest_at_the_rate() {
        let (rate_limiter, begun) = (rate_limiter(10), Instant::now());
        for _ in 0..10 {
            rate_limiter.wait_turn(Urgency::Spawn).await;
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        for _ in 0..20 {
            rate_limiter.wait_turn(Urgency::Spawn).await;
        }
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(1_990) && took <= Duration::from_millis(2_050), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn urgent_requests_go_first_and_a_cancelled_wait_uses_no_turn() {
        let rate_limiter = rate_limiter(1);
        rate_limiter.wait_turn(Urgency::Spawn).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let wait = |urgency| {
            let (rate_limiter, order) = (rate_limiter.clone(), Arc::clone(&order));
            tokio::spawn(async move {
                rate_limiter.wait_turn(urgency).await;
                order.lock().unwrap().push(urgency);
            })
        };
        let gave_up = wait(Urgency::Stop);
        let others = [wait(Urgency::Housekeeping), wait(Urgency::Spawn), wait(Urgency::Stop)];
        tokio::task::yield_now().await;
        gave_up.abort();
        let begun = Instant::now();
        for other in others {
            other.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [Urgency::Stop, Urgency::Spawn, Urgency::Housekeeping]);
        assert!(begun.elapsed() <= Duration::from_millis(3_050), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn lists_get_a_share_and_a_requested_pause_is_kept() {
        let rate_limiter = rate_limiter(1);
        rate_limiter.hold(Duration::from_secs(7));
        let begun = Instant::now();
        rate_limiter.wait_turn(Urgency::Stop).await;
        assert!(begun.elapsed() >= Duration::from_secs(7), "{:?}", begun.elapsed());
        let list_went = Arc::new(Mutex::new(None));
        let (mut spawns, after) = (Vec::new(), Arc::clone(&list_went));
        let house = rate_limiter.clone();
        let list = tokio::spawn(async move {
            house.wait_turn(Urgency::Housekeeping).await;
            *after.lock().unwrap() = Some(Instant::now());
        });
        for _ in 0..60 {
            let rate_limiter = rate_limiter.clone();
            spawns.push(tokio::spawn(async move { rate_limiter.wait_turn(Urgency::Spawn).await }));
        }
        let begun = Instant::now();
        for spawn in spawns {
            spawn.await.unwrap();
        }
        list.await.unwrap();
        let waited = list_went.lock().unwrap().unwrap() - begun;
        assert!(waited <= Duration::from_secs(u64::from(LEAST_URGENT_EVERY) + 1), "{waited:?}");
    }

    #[tokio::test]
    async fn what_is_done_in_the_background_is_least_urgent() {
        let request = || Request::post("/api/v1/namespaces/a/pods").body(Body::empty()).unwrap();
        assert_eq!(in_background(async { Urgency::from_request(&request()) }).await, Urgency::Housekeeping);
        assert_eq!(Urgency::from_request(&request()), Urgency::Pod);
    }

    #[test]
    fn the_urgency_of_a_request_follows_from_method_and_path() {
        for (method, uri, expected) in [
            (Method::DELETE, "/api/v1/namespaces/a/pods/b", Urgency::Stop),
            (Method::PATCH, "/api/v1/namespaces/a/pods/b?fieldManager=wasmspawner", Urgency::Spawn),
            (Method::POST, "/api/v1/namespaces/a/pods?fieldManager=wasmspawner", Urgency::Pod),
            (Method::POST, "/api/v1/namespaces?fieldManager=wasmspawner", Urgency::Namespace),
            (Method::GET, "/api/v1/namespaces/a/secrets/b", Urgency::Spawn),
            (Method::GET, "/api/v1/pods?&limit=500", Urgency::Housekeeping),
        ] {
            let request = Request::builder().method(method).uri(uri).body(Body::empty()).unwrap();
            assert_eq!(Urgency::from_request(&request), expected, "{uri}");
        }
    }
}
