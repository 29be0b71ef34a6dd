//! Limits on concurrent use by one user (`limits.per_user`), so that other users are not affected.

use crate::problem::kind::ProblemKind;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use wasmspawner_core::config::PerUserLimits;
use wasmspawner_core::names::Username;

use super::problem::Problem;
use wasmspawner_tasks::per_key::PerKey;

/// The time that a request waits for earlier ones of the same user before it is refused. The wait slows down a client
/// that repeats a refused request immediately.
const PATIENCE: Duration = Duration::from_secs(1);
/// The size of a burst, as the number of seconds whose requests may come at once.
const BURST_SECONDS: NonZeroU32 = NonZeroU32::new(10).expect("ten is not zero");
/// The number of users from which on those who have sent nothing for a while are dropped.
const MANY_USERS: usize = 10_000;

/// The current use by each user. Clones share it.
#[derive(Clone)]
pub struct FairUse(Arc<Inner>);

struct Inner {
    limits: PerUserLimits,
    requests: DefaultKeyedRateLimiter<Username>,
    spawns: DefaultKeyedRateLimiter<Username>,
    kernel_starts: DefaultKeyedRateLimiter<Username>,
    at_once: PerKey<Username>,
    streams: PerKey<Username>,
}

/// A permit that is held while a request or a stream of events is being answered.
pub(crate) type UserSlot = Arc<OwnedSemaphorePermit>;

impl FairUse {
    /// Creates the limits without any current use.
    pub fn new(limits: PerUserLimits) -> Self {
        let burst = limits.requests_per_second.saturating_mul(BURST_SECONDS);
        Self(Arc::new(Inner {
            requests: RateLimiter::keyed(Quota::per_second(limits.requests_per_second).allow_burst(burst)),
            spawns: RateLimiter::keyed(Quota::per_minute(limits.spawns_per_minute)),
            kernel_starts: RateLimiter::keyed(Quota::per_minute(limits.kernel_starts_per_minute)),
            at_once: PerKey::new(limits.requests_at_once),
            streams: PerKey::new(limits.event_streams),
            limits,
        }))
    }

    /// Waits until a request of the user may be answered.
    pub(crate) async fn request(&self, user: &Username) -> Result<UserSlot, Problem> {
        let Inner { limits, requests, at_once, .. } = &*self.0;
        forget_idle(requests);
        let slot = async {
            requests.until_key_ready(user).await;
            at_once.take(user).await
        };
        let slot = timeout(PATIENCE, slot).await.ok().flatten();
        slot.map(Arc::new).ok_or_else(|| {
            let PerUserLimits { requests_per_second, requests_at_once, .. } = limits;
            let msg = format!(
                "too many requests of one user: at most {requests_at_once} at a time and {requests_per_second} per second"
            );
            refused(ProblemKind::TooManyRequests, msg, 1)
        })
    }

    /// Counts a request of the user for a lab.
    pub(crate) fn spawn(&self, user: &Username) -> Result<(), Problem> {
        let Inner { limits, spawns, .. } = &*self.0;
        forget_idle(spawns);
        let most = limits.spawns_per_minute;
        spawns.check_key(user).map_err(|_| {
            let msg = format!("you may ask for {most} labs per minute; wait a moment");
            refused(ProblemKind::TooManySpawnsOfUser, msg, u64::from(60_u32.div_ceil(most.get())))
        })
    }

    /// Counts a request of the user for a kernel or a Dask pool.
    pub(crate) fn child(&self, user: &Username) -> Result<(), Problem> {
        let Inner { limits, kernel_starts, .. } = &*self.0;
        forget_idle(kernel_starts);
        let most = limits.kernel_starts_per_minute;
        kernel_starts.check_key(user).map_err(|_| {
            let msg = format!("you may ask for {most} kernels and Dask pools per minute; wait a moment");
            refused(ProblemKind::TooManyKernelsOfUser, msg, u64::from(60_u32.div_ceil(most.get())))
        })
    }

    /// Counts a stream of events that the user opens, until the returned slot is dropped.
    pub(crate) fn stream(&self, user: &Username) -> Result<UserSlot, Problem> {
        let Inner { limits, streams, .. } = &*self.0;
        streams.try_take(user).map(Arc::new).ok_or_else(|| {
            let msg = format!("you may have {} event streams at a time; close one", limits.event_streams);
            refused(ProblemKind::TooManyStreams, msg, 5)
        })
    }
}

fn refused(kind: ProblemKind, msg: String, retry_after: u64) -> Problem {
    Problem::new(kind, msg).retry_after(retry_after)
}

fn forget_idle(limiter: &DefaultKeyedRateLimiter<Username>) {
    if limiter.len() > MANY_USERS {
        limiter.retain_recent();
        limiter.shrink_to_fit();
    }
}
