//! Reports about policies, for administrators.

pub(crate) mod candidate_report;
pub(crate) mod loaded_policy;
pub(crate) mod version_record;
