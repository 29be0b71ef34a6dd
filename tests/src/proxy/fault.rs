//! Faults, and which requests they hit.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// What goes wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The connection is closed and the API server hears nothing.
    Drop,
    /// The API server does what it is asked, and the connection is closed before the answer.
    LoseAnswer,
    /// The API server does what it is asked, and half of the body of its answer arrives.
    Truncate,
    /// The API server does what it is asked, half of the body of its answer arrives, and the connection stays open.
    Stall,
    /// The API server hears of it only after this time.
    Delay(Duration),
    /// An answer that the API server never gave.
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
    /// A watch stays open and brings nothing any more, for as long as its client keeps it.
    Silence,
    /// A watch ends because its resource version is too old.
    Expire,
}

impl Fault {
    /// 500, as from an API server that lost its etcd.
    pub const INTERNAL_ERROR: Self = Self::Refuse { code: 500, reason: "InternalError", retry_after: None };
    /// 429, with a second to wait.
    pub const TOO_MANY_REQUESTS: Self =
        Self::Refuse { code: 429, reason: "TooManyRequests", retry_after: Some(1) };
    /// 409, as when somebody else has written.
    pub const CONFLICT: Self = Self::Refuse { code: 409, reason: "Conflict", retry_after: None };
    /// 401, as for credentials that have expired.
    pub const UNAUTHORIZED: Self = Self::Refuse { code: 401, reason: "Unauthorized", retry_after: None };
    /// 503, as from a load balancer without a backend.
    pub const UNAVAILABLE: Self = Self::Refuse { code: 503, reason: "ServiceUnavailable", retry_after: None };

    /// True for what happens to a watch that is open.
    pub(super) fn is_of_open_watches(&self) -> bool {
        matches!(self, Self::Reset | Self::Silence | Self::Expire)
    }
}

/// A fault, and which requests it hits.
#[derive(Debug)]
pub struct Rule {
    pattern: String,
    fault: Fault,
    left: AtomicUsize,
    hits: AtomicUsize,
}

impl Rule {
    /// Hits every request whose line contains `pattern`, until it is taken away. A line is verb, kind and path, in which
    /// a new object has its name too: `create pods /api/v1/namespaces/nublado-ada/pods/nb-ada`. The verbs are `create`,
    /// `update`, `patch`, `delete`, `delete-all`, `read`, `list` and `watch`.
    pub fn new(pattern: &str, fault: Fault) -> Self {
        let (left, hits) = (AtomicUsize::new(usize::MAX), AtomicUsize::default());
        Self { pattern: pattern.to_owned(), fault, left, hits }
    }

    /// Hits so many requests, and no more.
    #[must_use]
    pub fn times(mut self, times: usize) -> Self {
        self.left = AtomicUsize::new(times);
        self
    }

    /// How many requests it has hit.
    pub fn hits(&self) -> usize {
        self.hits.load(Ordering::SeqCst)
    }

    pub(super) fn fault(&self) -> &Fault {
        &self.fault
    }

    /// True if it hits this request, which counts.
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
