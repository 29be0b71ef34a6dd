//! Faults, and the requests that they apply to.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A fault of a request or a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The connection is closed and the API server does not receive the request.
    Drop,
    /// The API server carries out the request, and the connection is closed before the answer.
    LoseAnswer,
    /// The API server carries out the request, and only half of the body of its answer arrives.
    Truncate,
    /// The API server carries out the request, half of the body of its answer arrives, and the connection stays open.
    Stall,
    /// The request reaches the API server only after this time.
    Delay(Duration),
    /// The proxy itself answers with an error.
    Refuse {
        /// The HTTP status.
        code: u16,
        /// The reason, as Kubernetes names it.
        reason: &'static str,
        /// Seconds in `Retry-After`.
        retry_after: Option<u32>,
    },
    /// A watch ends in the middle of a line.
    Reset,
    /// A watch stays open without any further events, until its client closes it.
    Silence,
    /// A watch ends because its resource version is too old.
    Expire,
}

impl Fault {
    /// 500, as from an API server that has lost its etcd.
    pub const INTERNAL_ERROR: Self = Self::Refuse { code: 500, reason: "InternalError", retry_after: None };
    /// 429, with a pause of one second.
    pub const TOO_MANY_REQUESTS: Self =
        Self::Refuse { code: 429, reason: "TooManyRequests", retry_after: Some(1) };
    /// 409, as after a write by another client.
    pub const CONFLICT: Self = Self::Refuse { code: 409, reason: "Conflict", retry_after: None };
    /// 401, as for credentials that have expired.
    pub const UNAUTHORIZED: Self = Self::Refuse { code: 401, reason: "Unauthorized", retry_after: None };
    /// 503, as from a load balancer without a backend.
    pub const UNAVAILABLE: Self = Self::Refuse { code: 503, reason: "ServiceUnavailable", retry_after: None };

    /// True for faults of watches that are open.
    pub(super) fn is_of_open_watches(&self) -> bool {
        matches!(self, Self::Reset | Self::Silence | Self::Expire)
    }
}

/// A fault, and the requests that it applies to.
#[derive(Debug)]
pub struct Rule {
    pattern: String,
    fault: Fault,
    left: AtomicUsize,
    hits: AtomicUsize,
}

impl Rule {
    /// Applies to every request whose line contains `pattern`, until the rule is removed. A line consists of verb, kind
    /// and path. The path of a creation includes the object's name:
    /// `create pods /api/v1/namespaces/nublado-ada/pods/nb-ada`. The verbs are `create`, `update`, `patch`, `delete`,
    /// `delete-all`, `read`, `list` and `watch`.
    pub fn new(pattern: &str, fault: Fault) -> Self {
        let (left, hits) = (AtomicUsize::new(usize::MAX), AtomicUsize::default());
        Self { pattern: pattern.to_owned(), fault, left, hits }
    }

    /// Applies to this number of requests only.
    #[must_use]
    pub fn times(mut self, times: usize) -> Self {
        self.left = AtomicUsize::new(times);
        self
    }

    /// The number of requests that the rule has applied to.
    pub fn hits(&self) -> usize {
        self.hits.load(Ordering::SeqCst)
    }

    pub(super) fn fault(&self) -> &Fault {
        &self.fault
    }

    /// True if the rule applies to this request, which is then counted.
    pub(super) fn hit(&self, line: &str) -> bool {
        let one_less = |left: usize| left.checked_sub(1);
        let hit = line.contains(&self.pattern)
            && self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok();
        if hit {
            self.hits.fetch_add(1, Ordering::SeqCst);
        }
        hit
    }
}
