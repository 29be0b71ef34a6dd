//! The rules of each kind. Not all of Kubernetes' are here: those are that labs, and what is around them, can break.

mod container;
mod data;
mod json;
mod limits;
mod metadata;
mod namespaced;
mod network_policy;
mod placement;
mod pod;
mod probe;
mod volume;

use crate::apiserver::failure::{Cause, Failure};
use crate::apiserver::metadata::{self as meta, Document};
use crate::apiserver::resource::Resource;

/// 422 when a new object breaks a rule of its kind, 400 when a value of it cannot be read.
pub(in crate::apiserver) fn validate_create(resource: &Resource, object: &Document) -> Result<(), Failure> {
    let mut causes = metadata::of_any(resource, object);
    causes.extend(of_kind(resource, object));
    refuse(resource, object, causes)
}

/// 422 when a change breaks a rule of the kind.
pub(in crate::apiserver) fn validate_update(
    resource: &Resource,
    new: &Document,
    old: &Document,
) -> Result<(), Failure> {
    let mut causes = metadata::of_any(resource, new);
    causes.extend(metadata::of_update(new, old));
    causes.extend(of_kind(resource, new));
    causes.extend(match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pod::of_update(new, old),
        ("", "configmaps" | "secrets") => data::of_update(new, old),
        ("", "persistentvolumeclaims") => namespaced::claim_of_update(new, old),
        _ => Vec::new(),
    });
    refuse(resource, new, causes)
}

fn of_kind(resource: &Resource, object: &Document) -> Vec<Cause> {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pod::of(object),
        ("", "configmaps") => data::config_map(object),
        ("", "secrets") => data::secret(object),
        ("", "services") => namespaced::service(object),
        ("", "persistentvolumeclaims") => namespaced::claim(object),
        ("", "resourcequotas") => limits::quota(object),
        ("", "limitranges") => limits::range(object),
        ("networking.k8s.io", "networkpolicies") => network_policy::of(object),
        ("", "events") => namespaced::event(object),
        _ => resource.schema_causes(object),
    }
}

fn refuse(resource: &Resource, object: &Document, causes: Vec<Cause>) -> Result<(), Failure> {
    if let Some(cause) = causes.iter().find(|cause| cause.is_unreadable()) {
        let what = format!(
            "{} cannot be handled as a {}: {}: {}",
            meta::name(object),
            resource.kind,
            cause.field,
            cause.message
        );
        return Err(Failure::bad_request(&what));
    }
    if causes.is_empty() { Ok(()) } else { Err(resource.invalid(meta::name(object), causes)) }
}
