//! The requests that a driver makes for a lab, and their state.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::operation::after;

/// A request that a driver makes for its lab. Every request can safely be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Request {
    /// Call the policies, which decide on the lab.
    Decide,
    /// Create the lab's claim, and wait until it has a target.
    Bind,
    /// Create the lab's objects, the pod last.
    Create,
    /// Stop the lab's children: its kernels and pools.
    StopChildren,
    /// Create and delete workers of a Dask pool.
    SizePool,
    /// Delete the pod.
    DeletePod,
    /// Delete all other objects, and those that an earlier lab left at another place.
    DeleteRest,
    /// Read pod and namespace directly from the API server instead of from the watches.
    Read,
    /// Bring the record up to date.
    SaveRecord,
    /// Delete the record.
    DeleteRecord,
}

/// The pause before the first repetition of a request that did not have its effect.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(2);
const MAX_PAUSE: SignedDuration = SignedDuration::from_secs(60);

/// The state of the requests for one lab.
#[derive(Debug, Clone, Default)]
pub struct InFlight {
    requests: BTreeMap<Request, State>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// The request is under way.
    Awaited { tries: u32 },
    /// The request was answered, but its effect is not observed yet.
    Answered { tries: u32, again_at: Timestamp },
}

impl InFlight {
    /// Returns true while the request is under way.
    pub fn awaits(&self, request: Request) -> bool {
        matches!(self.requests.get(&request), Some(State::Awaited { .. }))
    }

    /// Returns true while a request is under way that may create objects.
    pub fn creates(&self) -> bool {
        [Request::Bind, Request::Create, Request::SizePool].into_iter().any(|request| self.awaits(request))
    }

    /// Returns the requests that are under way.
    pub fn awaited(&self) -> impl Iterator<Item = Request> + '_ {
        let awaited =
            |(request, state): (&Request, &State)| matches!(state, State::Awaited { .. }).then_some(*request);
        self.requests.iter().filter_map(awaited)
    }

    /// Marks the request as under way.
    pub fn begin(&mut self, request: Request) {
        let tries = self.requests.get(&request).map_or(0, |state| state.tries());
        self.requests.insert(request, State::Awaited { tries: tries.saturating_add(1) });
    }

    /// Marks the request as answered. If its effect is not observed, it is repeated after a pause that doubles each
    /// time.
    pub fn answered(&mut self, request: Request, now: Timestamp) {
        let tries = self.requests.get(&request).map_or(1, |state| state.tries()).max(1);
        let pause = FIRST_PAUSE.saturating_mul(1_i32 << (tries - 1).min(10)).min(MAX_PAUSE);
        self.requests.insert(request, State::Answered { tries, again_at: after(now, pause) });
    }

    /// Resets the pauses of a request whose effect was observed. A request that is still under way stays marked, so
    /// that it can be cancelled before the next lab's objects are created.
    pub fn on_effect_observed(&mut self, request: Request) {
        if !self.awaits(request) {
            self.forget(request);
        }
    }

    /// Removes a request that is no longer wanted, together with its pauses.
    pub fn forget(&mut self, request: Request) {
        self.requests.remove(&request);
    }

    /// Begins an operation: requests of the previous operation do not delay this one.
    pub(super) fn begin_operation(&mut self) {
        self.requests.retain(|_, state| matches!(state, State::Awaited { .. }));
    }

    /// Returns the time at which the request may be made; `None` while it is under way.
    pub(super) fn due_at(&self, request: Request) -> Option<Timestamp> {
        match self.requests.get(&request) {
            None => Some(Timestamp::MIN),
            Some(State::Awaited { .. }) => None,
            Some(State::Answered { again_at, .. }) => Some(*again_at),
        }
    }
}

impl State {
    fn tries(self) -> u32 {
        match self {
            Self::Awaited { tries } | Self::Answered { tries, .. } => tries,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_before_a_repeated_request_doubles_up_to_a_limit() {
        let (mut in_flight, now) = (InFlight::default(), Timestamp::UNIX_EPOCH);
        let request = Request::DeletePod;
        let pauses: Vec<SignedDuration> = (0..20)
            .map(|_| {
                in_flight.begin(request);
                assert_eq!(in_flight.due_at(request), None, "it is under way");
                in_flight.answered(request, now);
                in_flight.due_at(request).unwrap().duration_since(now)
            })
            .collect();
        assert_eq!(pauses[..3], [FIRST_PAUSE, FIRST_PAUSE * 2, FIRST_PAUSE * 4]);
        assert_eq!(pauses.last(), Some(&MAX_PAUSE));
        in_flight.on_effect_observed(request);
        assert_eq!(in_flight.due_at(request), Some(Timestamp::MIN), "the pauses begin anew");
    }
}
