//! What an object has to be like before it is stored: defaults, rules, quotas.

mod names;
mod prepare;
mod quota;
mod validate;

pub(super) use names::generated_name;
pub(super) use prepare::{prepare_create, prepare_update};
pub(super) use quota::check_quota;
pub(super) use validate::{validate_create, validate_update};

use super::failure::{Cause, Failure};
use super::metadata::{self, Document};
use super::resource::{Resource, from_definition};

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
