use std::collections::VecDeque;

use serde::Serialize;
use serde_json::Value;

use crate::names::hook::Hook;

/// How many differences are kept.
const KEPT: usize = 50;

/// How the answers of a candidate compare with those of the policy, since both were loaded.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CandidateReport {
    /// The digest of the candidate's component; absent if it could not be loaded.
    pub digest: Option<String>,
    /// Why it could not be loaded.
    pub error: Option<String>,
    /// How many answers were the same.
    pub same: u64,
    /// How many answers were different; an error is an answer, too.
    pub different: u64,
    /// How many calls were not compared, because too much was asked at that moment.
    pub skipped: u64,
    /// The last differences, newest first.
    pub last: VecDeque<DifferentAnswer>,
}

/// A call to which the candidate gave another answer.
#[derive(Clone, Debug, Serialize)]
pub struct DifferentAnswer {
    /// When it was asked.
    pub at: jiff::Timestamp,
    /// The hook.
    pub hook: Hook,
    /// The places in the answer that differ, as JSON pointers. The values may be secret, and are not told.
    pub places: Vec<String>,
    /// What was asked, as input of `wasmspawner policy run`.
    pub input: Value,
}

impl CandidateReport {
    pub(crate) fn note(&mut self, different: DifferentAnswer) {
        self.different += 1;
        self.last.push_front(different);
        self.last.truncate(KEPT);
    }
}
