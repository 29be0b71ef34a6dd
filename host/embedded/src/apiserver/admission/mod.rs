//! What an object has to be like before it is stored: defaults, rules, quotas.

mod defaults;
mod limits;
mod prepare;
mod quota;
mod validate;

pub(super) use prepare::{prepare_create, prepare_update};
pub(super) use quota::refresh_quotas;
pub(super) use validate::validate;

use super::failure::Failure;
use super::metadata::{self, Document};
use super::resource::{Resource, from_definition};
use super::store::{Key, State};
use limits::apply_limits;
use quota::{check_quota, quality_of_service};
use serde_json::{Value, json};

/// Admits a new object into its namespace as it is now: 403 when limits or quotas refuse it.
pub(super) fn admit(resource: &Resource, object: &mut Document, state: &State) -> Result<(), Failure> {
    if resource.is_core("pods") {
        check_references(resource, object, state)?;
        apply_limits(resource, object, state)?;
    }
    check_quota(resource, object, state)?;
    if resource.is_core("pods") {
        let class = quality_of_service(object);
        metadata::member(object, "status").insert("qosClass".to_owned(), json!(class));
    }
    Ok(())
}

/// A pod's account has to exist (admission plugin `ServiceAccount`), but for `default`, which no controller makes here.
/// Its priority class cannot: that kind is not served.
fn check_references(resource: &Resource, pod: &Document, state: &State) -> Result<(), Failure> {
    let spec = |field: &str| pod.get("spec").and_then(|spec| spec.get(field)).and_then(Value::as_str);
    let (name, namespace) = (metadata::name(pod), metadata::namespace(pod));
    let account = spec("serviceAccountName").unwrap_or("default");
    if account != "default" && state.get("serviceaccounts", &Key::new(namespace, account)).is_none() {
        let why = format!("error looking up service account {namespace}/{account}: it is not found");
        return Err(resource.forbidden(name, &why));
    }
    match spec("priorityClassName").unwrap_or_default() {
        "" => Ok(()),
        class => Err(resource.forbidden(name, &format!("no PriorityClass with name {class} was found"))),
    }
}

/// The kinds that an object makes known, when it is a `CustomResourceDefinition`.
pub(super) fn custom_kinds(
    resource: &Resource,
    document: &Document,
) -> Result<Option<Vec<Resource>>, Failure> {
    if resource.plural != "customresourcedefinitions" {
        return Ok(None);
    }
    let kinds = from_definition(document);
    kinds.map(Some).map_err(|error| Failure::bad_request(format!("the definition cannot be read: {error}")))
}
