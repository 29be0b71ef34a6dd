//! The rules of each kind.

use crate::apiserver::failure::{Cause, Failure};
use crate::apiserver::metadata::{self, Document};
use crate::apiserver::resource::Resource;

/// 422 when a new object breaks a rule of its kind.
pub(in crate::apiserver) fn validate_create(resource: &Resource, object: &Document) -> Result<(), Failure> {
    let mut causes = Vec::new();
    if metadata::name(object).is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    }
    causes.extend(resource.schema_causes(object));
    refuse(resource, object, causes)
}

/// 422 when a change breaks a rule of the kind.
pub(in crate::apiserver) fn validate_update(
    resource: &Resource,
    new: &Document,
    _old: &Document,
) -> Result<(), Failure> {
    refuse(resource, new, resource.schema_causes(new))
}

fn refuse(resource: &Resource, object: &Document, causes: Vec<Cause>) -> Result<(), Failure> {
    if causes.is_empty() { Ok(()) } else { Err(resource.invalid(metadata::name(object), causes)) }
}
