//! What an object has to be like before it is stored: defaults, rules, quotas.

mod defaults;
mod demand;
mod limits;
mod names;
mod prepare;
mod quantity;
mod quota;
mod validate;

pub(super) use names::generated_name;
pub(super) use prepare::{prepare_create, prepare_update};
pub(super) use quota::refresh_quotas;
pub(super) use validate::{validate_create, validate_update};

use super::failure::{Cause, Failure};
use super::metadata::{self, Document};
use super::resource::{Resource, from_definition};
use super::store::State;
use limits::apply_limits;
use quota::check_quota;
use serde_json::json;

/// Admits a new object into its namespace as it is now: 403 when limits or quotas refuse it.
pub(super) fn admit(resource: &Resource, object: &mut Document, state: &State) -> Result<(), Failure> {
    apply_limits(resource, object, state)?;
    check_quota(resource, object, state)?;
    if resource.is_core("pods") {
        let class = demand::quality_of_service(object);
        metadata::member(object, "status").insert("qosClass".to_owned(), json!(class));
    }
    Ok(())
}

/// The kinds that an object makes known, when it is a `CustomResourceDefinition`.
pub(super) fn custom_kinds(
    resource: &Resource,
    document: &Document,
) -> Result<Option<Vec<Resource>>, Failure> {
    if resource.plural != "customresourcedefinitions" {
        return Ok(None);
    }
    from_definition(document).map(Some).map_err(|error| {
        let cause = Cause::required("spec", &error.to_string());
        resource.invalid(metadata::name(document), vec![cause])
    })
}
