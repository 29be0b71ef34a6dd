//! The condition `ErrorOccurred`.

use jiff::Timestamp;

use crate::custom_resource::condition::Condition;

const ERROR_OCCURRED: &str = "ErrorOccurred";

/// Returns the condition, if there is a problem.
pub(in crate::custom_resource::environment) fn problem(conditions: &[Condition]) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.kind == ERROR_OCCURRED && condition.status == "True")
}

/// A problem: its reason in `CamelCase`, and in words.
pub(super) type Problem = (String, String);

/// Returns the problem in the condition, to keep it or to repeat it.
pub(super) fn known_problem(conditions: &[Condition]) -> Option<Problem> {
    problem(conditions).map(|known| (known.reason.clone(), known.message.clone()))
}

/// Sets the condition, or removes it if there is no problem. Other conditions stay.
pub(super) fn set_problem(conditions: &mut Vec<Condition>, found: Option<Problem>, now: Timestamp) {
    if known_problem(conditions) == found {
        return;
    }
    conditions.retain(|condition| condition.kind != ERROR_OCCURRED);
    if let Some((reason, message)) = found {
        conditions.push(Condition {
            kind: ERROR_OCCURRED.to_owned(),
            status: "True".to_owned(),
            reason,
            message,
            last_transition_time: now,
        });
    }
}
