//! The leadership of one process of an installation: only the one that holds the installation's Lease changes anything.
//!
//! No process can know that another has taken its Lease a moment ago. Therefore, each change is checked against the
//! time for which nobody else can have taken it, and each write of a record carries the leadership's number, so that an
//! older leader is noticed, and refused by the API server itself.

mod candidate;
mod lease;

pub use candidate::Candidate;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use rustix::time::{ClockId, clock_gettime};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::service_fn;

/// Says whether this process may change anything. Clones share it.
#[derive(Clone, Debug)]
pub struct Leadership(Arc<State>);

#[derive(Debug)]
struct State {
    /// The end of the time in which this process may send changes, by the clock of [`since_boot`], in milliseconds.
    until: AtomicU64,
    /// The number of this leadership; 0 before it has begun, and without a Lease.
    epoch: AtomicU64,
    /// The changes that were sent and not answered yet.
    under_way: TaskTracker,
    lost: CancellationToken,
    standing: Mutex<Standing>,
}

/// The role of a process in its installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The process has not read the Lease yet, or cannot read it now.
    Unknown,
    /// Another process leads, and this one is to take over from it.
    StandsBy,
    /// The process leads. While it does not reach the API server, it does not know that another has taken over.
    Leads,
    /// The process has led, and another may lead now.
    HasLed,
}

/// The greatest number of a leadership: a Lease counts to here.
const MAX_EPOCH: u64 = 2_147_483_646;

/// The time after the end of a leadership in which changes that were sent before may be answered. Others take the Lease
/// later than that.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);

/// The error of a change that is not sent, because another process may lead.
#[derive(Debug, thiserror::Error)]
#[error("this process does not hold the Lease now, so it sends no change; the log says why")]
struct NotLeading;

impl Leadership {
    /// Creates a leadership that begins when a [`Candidate`] takes the Lease.
    pub fn by_lease() -> Self {
        Self::until(0, Standing::Unknown)
    }

    /// Creates the leadership of a process beside which there can be no other.
    pub fn alone() -> Self {
        Self::until(u64::MAX, Standing::Leads)
    }

    fn until(until: u64, standing: Standing) -> Self {
        Self(Arc::new(State {
            until: AtomicU64::new(until),
            epoch: AtomicU64::default(),
            under_way: TaskTracker::new(),
            lost: CancellationToken::new(),
            standing: Mutex::new(standing),
        }))
    }

    /// Returns the role of this process in its installation.
    pub fn standing(&self) -> Standing {
        *self.lock_standing()
    }

    fn stand(&self, standing: Standing) {
        *self.lock_standing() = standing;
    }

    fn lock_standing(&self) -> MutexGuard<'_, Standing> {
        self.0.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true while this process may send changes.
    pub fn may_change(&self) -> bool {
        millis(since_boot()) < self.0.until.load(Ordering::Relaxed)
    }

    /// Returns the number of this leadership, which is greater than those of all earlier ones; 0 without a Lease.
    pub fn epoch(&self) -> u64 {
        self.0.epoch.load(Ordering::Relaxed)
    }

    /// Raises the number above `other`, the greatest in the records. The numbers of a Lease that was deleted and made again
    /// begin with 1.
    pub fn exceed(&self, other: u64) {
        if self.epoch() > 0 {
            self.0.epoch.fetch_max(other.saturating_add(1).min(MAX_EPOCH), Ordering::Relaxed);
        }
    }

    /// Ends the leadership, because another process leads.
    fn lose(&self, why: &str) {
        if self.standing() == Standing::HasLed {
            return;
        }
        tracing::error!(why, "another process leads now; this one changes nothing any more");
        self.stand(Standing::HasLed);
        self.0.lost.cancel();
        self.forbid();
    }

    /// Ends the leadership if `epoch`, the number in a record, is greater than its own.
    pub fn end_if_later(&self, epoch: u64) {
        if self.epoch() > 0 && epoch > self.epoch() {
            self.lose("a record was written by a later leader");
        }
    }

    /// Waits until the leadership is lost.
    pub async fn lost(&self) {
        self.0.lost.cancelled().await;
    }

    /// Allows no change from now on.
    fn forbid(&self) {
        self.0.until.store(0, Ordering::Relaxed);
    }

    /// Allows no change from now on, and waits until those that were sent are answered.
    async fn end(&self) {
        self.stand(Standing::HasLed);
        self.forbid();
        self.0.under_way.close();
        self.0.under_way.wait().await;
    }

    /// Waits until the time of this leadership is over, and a moment longer.
    async fn over(&self) {
        loop {
            let until = self.0.until.load(Ordering::Relaxed);
            if until == u64::MAX {
                return std::future::pending().await;
            }
            let over = Duration::from_millis(until) + ANSWERED_WITHIN;
            match over.checked_sub(since_boot()) {
                Some(left) if !left.is_zero() => tokio::time::sleep(left).await,
                _ => return,
            }
        }
    }

    fn begin(&self, epoch: u64) {
        self.0.epoch.store(epoch, Ordering::Relaxed);
        self.stand(Standing::Leads);
    }

    /// Allows changes until `until`, unless the leadership was lost meanwhile.
    fn extend(&self, until: Duration) {
        self.0.until.store(millis(until), Ordering::Relaxed);
        if self.0.lost.is_cancelled() {
            self.0.until.store(0, Ordering::Relaxed);
        }
    }

    /// Wraps a client: requests that change something, and are no dry runs, fail unless this process leads at the moment
    /// they are sent. Those that are not answered when its time is over are given up, before another process can lead.
    pub(crate) fn guard(&self, client: Client) -> Client {
        let (leadership, namespace) = (self.clone(), client.default_namespace().to_owned());
        let service = service_fn(move |request: Request<Body>| {
            let (client, leadership) = (client.clone(), leadership.clone());
            async move {
                if !changes(&request) {
                    return client.send(request).await.map_err(tower::BoxError::from);
                }
                let _under_way = leadership.0.under_way.token();
                if !leadership.may_change() {
                    return Err(tower::BoxError::from(NotLeading));
                }
                tokio::select! {
                    answer = client.send(request) => answer.map_err(tower::BoxError::from),
                    () = leadership.over() => Err(tower::BoxError::from(NotLeading)),
                }
            }
        });
        Client::new(service, namespace)
    }
}

/// Returns true if a change was not sent because this process does not lead. That says nothing about the API server.
pub(crate) fn is_refused_by_guard(error: &kube::Error) -> bool {
    let mut causes =
        std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |error| error.source());
    causes.any(<dyn std::error::Error>::is::<NotLeading>)
}

fn changes(request: &Request<Body>) -> bool {
    let is_dry_run =
        request.uri().query().is_some_and(|query| query.split('&').any(|part| part == "dryRun=All"));
    !is_dry_run && !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Returns the time since the machine was started. It goes on while the machine sleeps, and nobody can set it.
fn since_boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_mins(1);

    #[test]
    fn changes_are_allowed_for_a_time_and_never_after_a_loss() {
        let leadership = Leadership::by_lease();
        assert!(!leadership.may_change());
        leadership.begin(3);
        leadership.extend(since_boot() + SOON);
        assert!(leadership.may_change());
        leadership.extend(since_boot());
        assert!(!leadership.may_change(), "nobody has renewed it");
        leadership.extend(since_boot() + SOON);
        leadership.lose("a test");
        leadership.extend(since_boot() + SOON);
        assert!(!leadership.may_change(), "a late answer does not bring it back");
    }

    #[test]
    fn only_a_later_leader_ends_a_leadership() {
        let leadership = Leadership::by_lease();
        leadership.begin(3);
        leadership.extend(since_boot() + SOON);
        leadership.end_if_later(2);
        leadership.end_if_later(3);
        leadership.exceed(7);
        assert_eq!(leadership.epoch(), 8, "the Lease was deleted and began anew");
        leadership.end_if_later(8);
        assert!(leadership.may_change());
        leadership.end_if_later(9);
        assert!(!leadership.may_change());
        let alone = Leadership::alone();
        alone.exceed(5);
        alone.end_if_later(9);
        assert!(alone.may_change() && alone.epoch() == 0);
    }
}
