//! Decides when a candidate takes a Lease, as it has seen it.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

/// The time for which a Lease is valid after its last renewal, as others see it.
pub(super) const DURATION: Duration = Duration::from_secs(8);

/// The time after which a candidate does not know any more whether a Lease was renewed meanwhile.
pub(super) const BLIND_AFTER: Duration = Duration::from_secs(5);

/// The longest duration of a Lease that is believed.
const MAX_DURATION: Duration = Duration::from_mins(1);

/// A Lease that a candidate does not hold.
#[derive(Debug)]
pub(super) struct Seen {
    /// `None` if somebody has deleted it: its holder may not know that yet.
    version: Option<String>,
    /// The time since when it is as it is.
    since: Duration,
    /// The time of the last look at it.
    at: Duration,
}

/// The next step of a candidate.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It takes the Lease.
    Take,
    /// It looks again later, because the holder may be alive.
    Wait,
}

/// Decides about a Lease that was read; `None` if there is none. The request was sent at `asked`, and answered at
/// `answered`. `seen` is what earlier looks have shown.
///
/// A Lease without a holder can be taken at once. So can that of an earlier process of the same pod: Kubernetes never
/// runs two. Any other can be taken when it has not been renewed for its duration, by the candidate's own clock: those of
/// other machines may be wrong. The holder may have renewed it just before the answer that shows it first, and may renew it
/// just after the last question. Time in which the candidate could not look does not count, because the holder could not
/// renew it either.
pub(super) fn next_step(
    lease: Option<&Lease>,
    identity: &str,
    seen: &mut Option<Seen>,
    asked: Duration,
    answered: Duration,
) -> Step {
    let spec = lease.and_then(|lease| lease.spec.as_ref());
    let holder = spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default();
    let is_free = match lease {
        Some(_) => holder.is_empty() || holder == identity,
        None => seen.is_none(),
    };
    if is_free {
        return Step::Take;
    }
    let version = lease.and_then(|lease| lease.metadata.resource_version.clone());
    let since = match seen {
        Some(seen) if seen.version == version && asked.saturating_sub(seen.at) <= BLIND_AFTER => seen.since,
        _ => answered,
    };
    *seen = Some(Seen { version, since, at: answered });
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds).and_then(|span| u64::try_from(span).ok());
    let duration = seconds.map_or(DURATION, Duration::from_secs).clamp(DURATION, MAX_DURATION);
    if asked.saturating_sub(since) >= duration { Step::Take } else { Step::Wait }
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

    /// What a candidate does at these seconds about these versions of the Lease of another.
    fn steps(looks: &[(u64, Option<&str>)]) -> Vec<Step> {
        let mut seen = None;
        let step = |&(at, version): &(u64, Option<&str>)| {
            let lease = version.map(|version| lease("other", version));
            let at = Duration::from_secs(at);
            next_step(lease.as_ref(), "me", &mut seen, at, at)
        };
        looks.iter().map(step).collect()
    }

    /// Looks at the same version every two seconds.
    fn looks(version: Option<&'static str>, from: u64, to: u64) -> Vec<(u64, Option<&'static str>)> {
        (from..=to).step_by(2).map(|at| (at, version)).collect()
    }

    #[test]
    fn the_lease_of_another_is_taken_when_it_was_not_renewed_for_its_time() {
        let all_but_last_wait = |looks: &[_]| {
            let mut steps = steps(looks);
            assert_eq!(steps.pop(), Some(Step::Take), "{looks:?}");
            assert!(steps.iter().all(|step| *step == Step::Wait), "{looks:?}: {steps:?}");
        };
        all_but_last_wait(&looks(Some("1"), 100, 108));
        // It was renewed.
        all_but_last_wait(&[looks(Some("1"), 100, 106), looks(Some("2"), 108, 116)].concat());
        // Somebody has deleted it, and its holder does not know that yet.
        all_but_last_wait(&[looks(Some("1"), 100, 104), looks(None, 106, 114)].concat());
        // The API server was away for a minute.
        all_but_last_wait(&[looks(Some("1"), 100, 104), looks(Some("1"), 164, 172)].concat());
    }

    /// The first step of a candidate.
    fn at_once(lease: Option<&Lease>) -> Step {
        next_step(lease, "me", &mut None, Duration::ZERO, Duration::ZERO)
    }

    /// The time of an answer that shows a Lease first, and of a question that shows it last, count for its holder.
    #[test]
    fn slow_answers_do_not_let_a_lease_be_taken_early() {
        let (lease, mut seen) = (lease("other", "1"), None);
        let mut look = |asked, answered| {
            let [asked, answered] = [asked, answered].map(Duration::from_secs);
            next_step(Some(&lease), "me", &mut seen, asked, answered)
        };
        let looks = [look(100, 103), look(104, 107), look(108, 111), look(110, 113), look(111, 114)];
        assert_eq!(looks, [Step::Wait, Step::Wait, Step::Wait, Step::Wait, Step::Take]);
    }

    #[test]
    fn a_lease_that_nobody_alive_holds_is_taken_at_once() {
        for holder in ["", "me"] {
            assert_eq!(at_once(Some(&lease(holder, "1"))), Step::Take);
        }
        assert_eq!(at_once(Some(&Lease::default())), Step::Take);
        assert_eq!(at_once(None), Step::Take);
        assert_eq!((epoch(&lease("other", "1")), epoch(&Lease::default())), (4, 0));
    }

    #[test]
    fn no_duration_lets_a_lease_be_taken_early_or_never() {
        for (seconds, waits, takes) in [(0, 6, 8), (86_400, 58, 60)] {
            let mut lease = lease("other", "1");
            lease.spec.as_mut().unwrap().lease_duration_seconds = Some(seconds);
            let mut seen = None;
            let mut at = |at| {
                let at = Duration::from_secs(at);
                next_step(Some(&lease), "me", &mut seen, at, at)
            };
            assert!((0..=waits).step_by(2).all(|second| at(second) == Step::Wait), "{seconds}");
            assert_eq!(at(takes), Step::Take, "{seconds}");
        }
    }
}
