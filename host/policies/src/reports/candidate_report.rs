use std::collections::VecDeque;

use serde::Serialize;
use serde_json::Value;

use crate::names::hook::Hook;

/// The maximum number of differences that are kept.
const KEPT: usize = 50;

/// A comparison of a candidate's answers with those of the policy, since both were loaded.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CandidateReport {
    /// The digest of the candidate's component; absent if it could not be loaded.
    pub digest: Option<String>,
    /// The reason that the candidate could not be loaded.
    pub error: Option<String>,
    /// The number of answers that were the same.
    pub same: u64,
    /// The number of answers that were different; an error is an answer, too.
    pub different: u64,
    /// The number of calls that were not compared, because of an overload at that moment.
    pub skipped: u64,
    /// The last differences, newest first.
    pub last: VecDeque<DifferentAnswer>,
}

/// A call to which the candidate gave another answer.
#[derive(Clone, Debug, Serialize)]
pub struct DifferentAnswer {
    /// The time of the call.
    pub at: jiff::Timestamp,
    /// The hook that was called.
    pub hook: Hook,
    /// The places in the answer that differ, as JSON pointers. The values may be secret, and are not included.
    pub places: Vec<String>,
    /// The call, as input of `wasmspawner policy run`.
    pub input: Value,
}

impl CandidateReport {
    pub(crate) fn note(&mut self, different: DifferentAnswer) {
        self.different += 1;
        self.last.push_front(different);
        self.last.truncate(KEPT);
    }
}
