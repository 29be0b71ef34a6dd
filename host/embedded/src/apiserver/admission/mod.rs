//! Admission of objects before they are stored: defaults, rules and quotas.

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

/// Admits a new object into the current state of its namespace. Fails with 403 if limits or quotas refuse it.
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

/// Checks the references of a pod. Its account must exist (admission plugin `ServiceAccount`), except for `default`,
/// which no controller creates here. It must not name a priority class, because that kind is not served.
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

/// Returns the kinds that an object defines if it is a `CustomResourceDefinition`.
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
