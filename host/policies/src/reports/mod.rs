//! What administrators are told of policies.

pub(crate) mod candidate_report;
pub(crate) mod loaded_policy;
pub(crate) mod version_record;
