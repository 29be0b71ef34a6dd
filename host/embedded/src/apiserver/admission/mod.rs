//! What an object has to be like before it is stored: defaults, rules, quotas.

mod defaults;
mod demand;
mod limits;
mod names;
mod prepare;
mod priority;
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
use super::store::{Key, State};
use limits::apply_limits;
use quota::check_quota;
use serde_json::{Value, json};

/// Admits a new object into its namespace as it is now: 403 when limits or quotas refuse it.
pub(super) fn admit(resource: &Resource, object: &mut Document, state: &State) -> Result<(), Failure> {
    if resource.is_core("pods") {
        check_account(resource, object, state)?;
        priority::apply_class(resource, object, state)?;
    }
    apply_limits(resource, object, state)?;
    check_quota(resource, object, state)?;
    if resource.is_core("pods") {
        let class = demand::quality_of_service(object);
        metadata::member(object, "status").insert("qosClass".to_owned(), json!(class));
    }
    Ok(())
}

/// Pods run as somebody who exists (admission plugin `ServiceAccount`). No controller makes the account `default` of a
/// namespace here, so that one need not.
fn check_account(resource: &Resource, pod: &Document, state: &State) -> Result<(), Failure> {
    let account = pod.get("spec").and_then(|spec| spec.get("serviceAccountName")).and_then(Value::as_str);
    let (account, namespace) = (account.unwrap_or("default"), metadata::namespace(pod));
    if account == "default" || state.get("serviceaccounts", &Key::new(namespace, account)).is_some() {
        return Ok(());
    }
    let why = format!(
        "error looking up service account {namespace}/{account}: serviceaccount \"{account}\" not found"
    );
    Err(resource.forbidden(metadata::name(pod), &why))
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
