//! What to do next for a lab: derived from where it is, what is observed and what is asked already, as often as anybody
//! asks. A lost answer, a request that was dropped or a watch that fell silent therefore only costs time.

use jiff::Timestamp;

use super::{Lab, Phase, Request, SpawnStep};

/// Whether a lab's record says what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordState {
    /// There is none.
    Missing,
    /// It has to be written.
    Stale,
    /// It is up to date.
    Current,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Requests to make now.
    pub start: Vec<Request>,
    /// Requests whose answers nobody needs any more, to be ended as soon as possible.
    pub cancel: Vec<Request>,
    /// When to ask again, if nothing happens before.
    pub again_at: Option<Timestamp>,
}

/// What to do next for `lab`, at `now`.
pub fn plan(lab: &Lab, record: RecordState, now: Timestamp) -> Plan {
    let mut plan = Plan { again_at: lab.deadline(), ..Plan::default() };
    for request in needed(lab, record) {
        match lab.in_flight.due_at(request) {
            Some(due) if due <= now => plan.start.push(request),
            Some(due) => plan.again_at = Some(plan.again_at.map_or(due, |known| known.min(due))),
            None => {}
        }
    }
    plan.cancel = lab.in_flight.awaited().filter(|request| !is_wanted(*request, lab)).collect();
    plan
}

fn needed(lab: &Lab, record: RecordState) -> Vec<Request> {
    let mut needed = match &lab.phase {
        Phase::Starting(starting) => match starting.step {
            SpawnStep::Cleaning => deletion(lab),
            SpawnStep::Deciding => vec![Request::Decide],
            SpawnStep::Creating => vec![Request::Create],
            SpawnStep::Waiting => Vec::new(),
        },
        Phase::Stopping(_) | Phase::Leaving(_) | Phase::Failed(_) => deletion(lab),
        Phase::Running(_) | Phase::Absent => Vec::new(),
    };
    if lab.is_overdue() {
        needed.push(Request::Read);
    }
    match (record, &lab.phase) {
        (RecordState::Stale | RecordState::Current, Phase::Absent) => needed.push(Request::DeleteRecord),
        (RecordState::Stale, _) => needed.push(Request::SaveRecord),
        (RecordState::Missing | RecordState::Current, _) => {}
    }
    needed
}

/// The pod goes first, then everything else; nothing while objects may still be created behind the deletion's back.
fn deletion(lab: &Lab) -> Vec<Request> {
    if lab.in_flight.awaits(Request::Create) {
        Vec::new()
    } else if !lab.observed.pod.is_missing() {
        vec![Request::DeletePod]
    } else if !lab.observed.rest.is_missing() {
        vec![Request::DeleteRest]
    } else {
        Vec::new()
    }
}

fn is_wanted(request: Request, lab: &Lab) -> bool {
    let step = match &lab.phase {
        Phase::Starting(starting) => Some(starting.step),
        _ => None,
    };
    match request {
        Request::Decide => step == Some(SpawnStep::Deciding),
        Request::Create => step == Some(SpawnStep::Creating),
        // What is left of a deletion must not meet the next lab's objects.
        Request::DeletePod | Request::DeleteRest => {
            !matches!(step, Some(SpawnStep::Deciding | SpawnStep::Creating | SpawnStep::Waiting))
        }
        Request::Read => lab.is_overdue(),
        Request::SaveRecord | Request::DeleteRecord => true,
    }
}
