//! What a candidate does next about a Lease, as it has seen it.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

/// The time for which a Lease is valid after its last renewal, as others see it.
pub(super) const DURATION: Duration = Duration::from_secs(10);

/// A Lease that a candidate does not hold, with the time since when it is as it is.
#[derive(Debug)]
pub(super) struct Seen {
    version: Option<String>,
    since: Duration,
}

/// What a candidate does about the Lease of another.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It takes the Lease.
    Take,
    /// It looks again later, because the holder may be alive.
    Wait,
}

/// Decides about a Lease that was read at `now`. `seen` is what earlier reads have shown.
///
/// A Lease without a holder can be taken at once. So can that of an earlier process of the same pod: Kubernetes never
/// runs two. Any other can be taken when it has not been renewed for its duration, by the candidate's own clock: those of
/// other machines may be wrong.
pub(super) fn next_step(lease: &Lease, identity: &str, seen: &mut Option<Seen>, now: Duration) -> Step {
    let spec = lease.spec.as_ref();
    let holder = spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default();
    if holder.is_empty() || holder == identity {
        return Step::Take;
    }
    let version = lease.metadata.resource_version.clone();
    let since = match seen {
        Some(seen) if seen.version == version => seen.since,
        _ => seen.insert(Seen { version, since: now }).since,
    };
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds).and_then(|span| u64::try_from(span).ok());
    let duration = seconds.map_or(DURATION, Duration::from_secs);
    if now.saturating_sub(since) >= duration { Step::Take } else { Step::Wait }
}

/// Returns the number of the leadership that this Lease is about.
pub(super) fn epoch(lease: &Lease) -> u64 {
    let transitions = lease.spec.as_ref().and_then(|spec| spec.lease_transitions);
    transitions.and_then(|count| u64::try_from(count).ok()).unwrap_or_default()
}

/// Returns the spec of a Lease that was just taken.
pub(super) fn taken(identity: &str, epoch: u64, now: Timestamp) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
        acquire_time: Some(MicroTime(now)),
        renew_time: Some(MicroTime(now)),
        lease_transitions: i32::try_from(epoch).ok(),
        ..LeaseSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: &str, version: &str) -> Lease {
        let mut lease = Lease { spec: Some(taken(holder, 4, Timestamp::UNIX_EPOCH)), ..Lease::default() };
        lease.metadata.resource_version = Some(version.to_owned());
        lease
    }

    #[test]
    fn the_lease_of_another_is_taken_when_it_was_not_renewed_for_its_time() {
        let (mut seen, second) = (None, Duration::from_secs);
        let mut step = |version, at| next_step(&lease("other", version), "me", &mut seen, second(at));
        assert_eq!(step("1", 100), Step::Wait, "nobody knows how old it is");
        assert_eq!(step("1", 109), Step::Wait);
        assert_eq!(step("2", 110), Step::Wait, "it was renewed");
        assert_eq!(step("2", 119), Step::Wait);
        assert_eq!(step("2", 120), Step::Take);
    }

    #[test]
    fn a_lease_that_nobody_alive_holds_is_taken_at_once() {
        for holder in ["", "me"] {
            assert_eq!(next_step(&lease(holder, "1"), "me", &mut None, Duration::ZERO), Step::Take);
        }
        assert_eq!(next_step(&Lease::default(), "me", &mut None, Duration::ZERO), Step::Take);
        assert_eq!((epoch(&lease("other", "1")), epoch(&Lease::default())), (4, 0));
    }
}
