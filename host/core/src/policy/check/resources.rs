use super::Findings;
use crate::names::{DnsLabel, LabelKey, ObjectName};
use crate::policy::Resources;

/// Kubernetes stores quantities as signed 64-bit numbers.
const MAX_QUANTITY: u64 = i64::MAX as u64;

pub(super) fn check(resources: &Resources, found: &mut Findings) {
    for (kind, request, limit) in [
        ("cpu", resources.cpu_request_millis, resources.cpu_limit_millis),
        ("memory", resources.memory_request_bytes, resources.memory_limit_bytes),
    ] {
        let unit = if kind == "cpu" { "millis" } else { "bytes" };
        let (request_field, limit_field) = (format!("{kind}_request_{unit}"), format!("{kind}_limit_{unit}"));
        found.refuse_if(limit == Some(0), &limit_field, "is zero; leave it out for no limit");
        let above = request.zip(limit).is_some_and(|(request, limit)| request > limit);
        found.refuse_if(above, &request_field, "is above the limit");
        found.refuse_if(
            request.max(limit).is_some_and(|value| value > MAX_QUANTITY),
            &limit_field,
            "is too large",
        );
    }
    found.each("extended", &resources.extended, ("", |(name, _)| name.clone()), |(name, amount), found| {
        extended_name(name, found);
        found.refuse_if(*amount > MAX_QUANTITY, "", "is too large");
    });
    found.each("claims", &resources.claims, ("name", |claim| claim.name.clone()), |claim, found| {
        found.parsed("name", DnsLabel::parse(claim.name.as_str()));
        found.parsed("template", ObjectName::parse(claim.template.as_str()));
        if let Some(request) = &claim.request {
            found.parsed("request", DnsLabel::parse(request.as_str()));
        }
    });
}

/// Checks the name of an extended resource. It has a domain that is not Kubernetes' own ("Extended resources" in its
/// documentation).
fn extended_name(name: &str, found: &mut Findings) {
    match name.split_once('/') {
        Some((domain, _)) if domain == "kubernetes.io" || domain.ends_with(".kubernetes.io") => {
            found.add("", "belongs to kubernetes.io; extended resources have another domain");
        }
        Some(_) => found.parsed("", LabelKey::parse(name)),
        None => found
            .add("", format!("{name:?} has no domain; an extended resource is called as `nvidia.com/gpu`")),
    }
}
