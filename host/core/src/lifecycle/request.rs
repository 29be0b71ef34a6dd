//! What is asked of the world for a lab, and what is asked already.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::operation::after;

/// Something that a driver has done for its lab. Each is safe to repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Request {
    /// Ask the policies what the lab is to be.
    Decide,
    /// Create the lab's objects, the pod last.
    Create,
    /// Delete the pod.
    DeletePod,
    /// Delete everything else, and what an earlier lab left elsewhere.
    DeleteRest,
    /// Read pod and namespace directly, not from what the watches have shown.
    Read,
    /// Bring the record up to date.
    SaveRecord,
    /// Delete the record.
    DeleteRecord,
}

/// The pause before a request is made again that did not bring about what was wanted.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(2);
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(60);

/// The requests that were made for one lab.
#[derive(Debug, Clone, Default)]
pub struct InFlight {
    requests: BTreeMap<Request, State>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Its answer is awaited.
    Awaited { tries: u32 },
    /// It was answered, and what was asked for is not there yet.
    Answered { tries: u32, again_at: Timestamp },
}

impl InFlight {
    /// True while an answer is awaited.
    pub fn awaits(&self, request: Request) -> bool {
        matches!(self.requests.get(&request), Some(State::Awaited { .. }))
    }

    /// The requests whose answers are awaited.
    pub fn awaited(&self) -> impl Iterator<Item = Request> + '_ {
        let awaited =
            |(request, state): (&Request, &State)| matches!(state, State::Awaited { .. }).then_some(*request);
        self.requests.iter().filter_map(awaited)
    }

    /// The request is being made.
    pub fn begin(&mut self, request: Request) {
        let tries = self.requests.get(&request).map_or(0, |state| state.tries());
        self.requests.insert(request, State::Awaited { tries: tries.saturating_add(1) });
    }

    /// An answer came. If what was asked for does not come about, the request is made again after a pause that doubles
    /// each time.
    pub fn answered(&mut self, request: Request, now: Timestamp) {
        let tries = self.requests.get(&request).map_or(1, |state| state.tries()).max(1);
        let pause = FIRST_PAUSE.saturating_mul(1_i32 << (tries - 1).min(10)).min(LONGEST_PAUSE);
        self.requests.insert(request, State::Answered { tries, again_at: after(now, pause) });
    }

    /// What was asked for has come about: the next time is the first again. A request whose answer is awaited stays
    /// known, so that it can be ended before the next lab's objects are there.
    pub fn come_about(&mut self, request: Request) {
        if !self.awaits(request) {
            self.forget(request);
        }
    }

    /// It is not wanted any more, and nobody waits for its answer: the next time is the first again.
    pub fn forget(&mut self, request: Request) {
        self.requests.remove(&request);
    }

    /// An operation begins: what was asked in the one before does not make this one wait.
    pub(super) fn begin_operation(&mut self) {
        self.requests.retain(|_, state| matches!(state, State::Awaited { .. }));
    }

    /// When a request may be made: nothing while its answer is awaited.
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
