//! Applies the limits of the operator and of the user to the answers of policies.

use super::merge::Merged;
use super::{Provenance, Source, SpawnInputs, SpawnRejected};
use crate::config::lab::MaxTimeLimits;
use crate::policy::{FieldError, TimeLimits};
use crate::users::quota::{Quantity, Quota};

/// Returns the smallest value of every limit, among those of the identity provider and those of the policies. Records
/// the source of each.
pub(super) fn quota(inputs: &SpawnInputs<'_>, provenance: &mut Provenance) -> Quota {
    let given = inputs.request.identity.quota.map(|quota| (Source::IdentityProvider, quota.limits()));
    given.iter().chain(&inputs.quotas).fold(Quota::default(), |so_far, (source, other)| {
        let both = so_far.clone().smaller_of_each(other.clone());
        let fields = [
            ("cpu", so_far.cpu_millis != both.cpu_millis),
            ("memory", so_far.memory_bytes != both.memory_bytes),
            ("storage", so_far.storage_bytes != both.storage_bytes),
            ("pods", so_far.pods != both.pods),
            ("labs", so_far.labs != both.labs),
        ];
        let extended = both
            .extended
            .iter()
            .map(|(name, limit)| (name.as_str(), so_far.extended.get(name) != Some(limit)));
        for (field, _) in fields.into_iter().chain(extended).filter(|(_, smaller)| *smaller) {
            provenance.set(format!("quota.{field}"), source);
        }
        both
    })
}

/// Refuses a lab that alone exceeds the user's quota, because its pod would never be created. The error contains the
/// largest size that fits.
pub(super) fn check_quota(merged: &Merged, quota: &Quota) -> Result<(), SpawnRejected> {
    let asked = &merged.resources;
    let mut errors = Vec::new();
    let mut compare = |field: &str, asked: Option<Quantity>, limit: Option<Quantity>| {
        if let (Some(asked), Some(limit)) = (asked, limit)
            && asked > limit
        {
            let message =
                format!("the lab would need {asked}, but your quota is {limit}; choose a smaller size");
            errors.push(FieldError::new(field, message));
        }
    };
    let cpu = asked.cpu_limit_millis.or(asked.cpu_request_millis);
    compare("quota.cpu", cpu.map(Quantity::millis), quota.cpu_millis.map(Quantity::millis));
    let memory = asked.memory_limit_bytes.or(asked.memory_request_bytes);
    compare("quota.memory", memory.map(Quantity::bytes), quota.memory_bytes.map(Quantity::bytes));
    for (name, amount) in &asked.extended {
        let limit = quota.extended.get(name).copied();
        compare(&format!("quota.{name}"), Some(Quantity::count(*amount)), limit.map(Quantity::count));
    }
    if errors.is_empty() { Ok(()) } else { Err(SpawnRejected::request(errors)) }
}

/// Returns the time limits that a policy asked for, reduced to the operator's maximum.
pub(super) fn time_limits(asked: TimeLimits, most: MaxTimeLimits, provenance: &mut Provenance) -> TimeLimits {
    let mut within = |field: &str, seconds: Option<u32>, most: Option<u32>| {
        let Some(most) = most else { return seconds };
        if let Some(seconds) = seconds.filter(|seconds| *seconds > most) {
            provenance.notes.push(format!(
                "time_limits.{field}: {seconds} s are cut to the operator's maximum of {most} s"
            ));
        }
        seconds.map(|seconds| seconds.min(most))
    };
    TimeLimits {
        spawn_seconds: within("spawn_seconds", asked.spawn_seconds, most.spawn_seconds),
        delete_seconds: within("delete_seconds", asked.delete_seconds, most.delete_seconds),
    }
}
