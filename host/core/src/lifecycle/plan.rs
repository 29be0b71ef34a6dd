//! Derives the next requests for a lab from its state, the observed cluster, and the requests under way. The plan is
//! recomputed at every event, so a lost answer, a dropped request or a silent watch only costs time.

use jiff::Timestamp;

use super::{Lab, Phase, Request, SpawnStep};

/// The state of a lab's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordState {
    /// There is no record.
    Missing,
    /// The record has to be written.
    Stale,
    /// The record names another place than the one where objects are about to be created, and has to be written first.
    Elsewhere,
    /// The record does not say yet that the lab's namespace is to be deleted. Until it says so, another process could
    /// start a lab in it.
    KeepsNamespace,
    /// The record is up to date.
    Current,
}

/// The next requests for a lab.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Requests to make now.
    pub start: Vec<Request>,
    /// Requests whose answers are no longer needed. They are to be cancelled as soon as possible.
    pub cancel: Vec<Request>,
    /// The time of the next plan if no event comes before.
    pub again_at: Option<Timestamp>,
}

/// Plans the next requests for `lab` at `now`.
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
            SpawnStep::Cleaning => deletion(lab, record),
            SpawnStep::Deciding => vec![Request::Decide],
            SpawnStep::Binding | SpawnStep::Creating
                if matches!(record, RecordState::Elsewhere | RecordState::KeepsNamespace) =>
            {
                Vec::new()
            }
            SpawnStep::Binding => vec![Request::Bind],
            SpawnStep::Creating => vec![Request::Create],
            SpawnStep::Waiting => Vec::new(),
        },
        Phase::Stopping(_) | Phase::CleaningUp(_) | Phase::Failed(_) => deletion(lab, record),
        Phase::Running(_) if lab.observed.is_unsized => vec![Request::SizePool],
        Phase::Running(_) | Phase::NamespaceKept(_) | Phase::Absent => Vec::new(),
    };
    if lab.is_overdue() {
        needed.push(Request::Read);
    }
    match (record, &lab.phase) {
        (RecordState::Missing, Phase::Absent) => {}
        (_, Phase::Absent) => needed.push(Request::DeleteRecord),
        (RecordState::Stale | RecordState::Elsewhere | RecordState::KeepsNamespace, _) => {
            needed.push(Request::SaveRecord);
        }
        (RecordState::Missing | RecordState::Current, _) => {}
    }
    needed
}

/// Plans a deletion: stops the children first, then deletes the pod and then the rest. Waits while a creation is still
/// under way, because it could create objects after their deletion. Once the time limit has passed, children that do
/// not end no longer delay the deletion.
fn deletion(lab: &Lab, record: RecordState) -> Vec<Request> {
    if lab.in_flight.creates() {
        return Vec::new();
    }
    let has_children = !lab.observed.children.is_missing();
    let waits = matches!(lab.phase, Phase::Stopping(_) | Phase::Starting(_)) && !lab.is_overdue();
    let own = if has_children && waits {
        None
    } else if !lab.observed.pod.is_missing() {
        Some(Request::DeletePod)
    } else if !lab.observed.rest.is_missing() && record != RecordState::KeepsNamespace {
        Some(Request::DeleteRest)
    } else {
        None
    };
    has_children.then_some(Request::StopChildren).into_iter().chain(own).collect()
}

fn is_wanted(request: Request, lab: &Lab) -> bool {
    let step = match &lab.phase {
        Phase::Starting(starting) => Some(starting.step),
        _ => None,
    };
    match request {
        Request::Decide => step == Some(SpawnStep::Deciding),
        Request::Bind => step == Some(SpawnStep::Binding),
        Request::Create => step == Some(SpawnStep::Creating),
        // A deletion request that is still under way could delete the next lab's objects.
        Request::StopChildren | Request::DeletePod | Request::DeleteRest => !matches!(
            step,
            Some(SpawnStep::Deciding | SpawnStep::Binding | SpawnStep::Creating | SpawnStep::Waiting)
        ),
        Request::SizePool => matches!(lab.phase, Phase::Running(_)),
        Request::Read => lab.is_overdue(),
        Request::SaveRecord | Request::DeleteRecord => true,
    }
}
