//! Validation of objects, and of changes to them, against the rules of their kind.

use crate::apiserver::failure::{Failure, duplicate, forbidden, invalid, not_found, required};
use crate::apiserver::metadata::{self, Document};
use crate::apiserver::names::Form;
use crate::apiserver::resource::Resource;
use crate::apiserver::schema::Findings;
use crate::quantity;
use serde_json::{Map, Value};
use std::collections::HashSet;

/// Validates a new object, or the result of a change of the `old` one. Fails with 422 if it breaks a rule of its kind,
/// and with 400 if a value in it cannot be read.
pub(crate) fn validate(resource: &Resource, new: &Document, old: Option<&Document>) -> Result<(), Failure> {
    let mut findings = Findings::default();
    of_any(resource, new, &mut findings);
    if let Some(old) = old {
        of_change(resource, new, old, &mut findings);
    }
    if let Some(what) = findings.unreadable {
        let kind = &resource.kind;
        return Err(Failure::bad_request(format!("the object cannot be handled as a {kind}: {what}")));
    }
    if findings.causes.is_empty() {
        return Ok(());
    }
    Err(resource.invalid(metadata::name(new), findings.causes))
}

/// Checks the fields that must not change after the creation of an object.
fn of_change(resource: &Resource, new: &Document, old: &Document, findings: &mut Findings) {
    let before: Vec<_> = metadata::finalizers(old).collect();
    if metadata::is_deleting(old) && metadata::finalizers(new).any(|finalizer| !before.contains(&finalizer)) {
        let rule = "no new finalizers can be added if the object is being deleted";
        findings.causes.push(forbidden("metadata.finalizers", rule));
    }
    let differs = |fields: &[&str]| fields.iter().any(|field| new.get(*field) != old.get(*field));
    let is_immutable = || old.get("immutable") == Some(&Value::Bool(true));
    let fixed = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") if fixed_spec(new) != fixed_spec(old) => {
            forbidden("spec", "of a pod only images, the deadline and added tolerations may change")
        }
        ("", "persistentvolumeclaims") if fixed_spec(new) != fixed_spec(old) => {
            forbidden("spec", "of a claim only the requested size may change")
        }
        ("", "configmaps" | "secrets") if is_immutable() && differs(&["data", "binaryData", "immutable"]) => {
            forbidden("data", "field is immutable when `immutable` is set")
        }
        ("", "secrets") if differs(&["type"]) => invalid("type", "", "field is immutable"),
        _ => return,
    };
    findings.causes.push(fixed);
}

/// Returns the part of the spec of a pod or a claim that must not change.
fn fixed_spec(object: &Document) -> Value {
    let mut spec = object.get("spec").cloned().unwrap_or_default();
    if let Value::Object(map) = &mut spec {
        let changeable =
            ["activeDeadlineSeconds", "tolerations", "schedulingGates", "resources", "volumeName"];
        map.retain(|field, _| !changeable.contains(&field.as_str()));
    }
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            container.remove("image");
        }
    }
    spec
}

fn items(list: Option<&Value>) -> impl Iterator<Item = &Value> {
    list.and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Checks the rules of `metadata`, which are the same for all kinds, and those of the kind.
fn of_any(resource: &Resource, object: &Document, findings: &mut Findings) {
    let name = metadata::name(object);
    let form = if resource.is_core("namespaces") { Form::Label } else { Form::Subdomain };
    if name.is_empty() {
        findings.causes.push(required("metadata.name"));
    } else if !form.accepts(name) {
        findings.causes.push(invalid("metadata.name", name, form.rule()));
    }
    if let Some(Value::Object(labels)) = metadata::field(object, "labels") {
        findings.check_labels(labels, "metadata.labels");
    }
    findings.check(object, &resource.schema);
    let nothing = Value::Object(Map::new());
    let spec = object.get("spec").unwrap_or(&nothing);
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => of_pod(spec, findings),
        ("", "configmaps" | "secrets") => of_data(object, findings),
        ("", "persistentvolumeclaims") => {
            let storage = spec.pointer("/resources/requests/storage").and_then(Value::as_str);
            match storage.map(|storage| (storage, quantity::milli(storage))) {
                None => findings.causes.push(required("spec.resources[storage]")),
                Some((storage, Some(..=0))) => {
                    let rule = "must be greater than zero";
                    findings.causes.push(invalid("spec.resources[storage]", storage, rule));
                }
                Some(_) => {}
            }
        }
        _ => {}
    }
}

fn of_pod(spec: &Value, findings: &mut Findings) {
    let volumes: HashSet<&str> = items(spec.get("volumes")).map(|volume| text(volume, "name")).collect();
    let mut names = HashSet::new();
    for list in ["containers", "initContainers"] {
        for (i, container) in items(spec.get(list)).enumerate() {
            let at = format!("spec.{list}[{i}]");
            let name = text(container, "name");
            if !name.is_empty() && !names.insert(name) {
                findings.causes.push(duplicate(format!("{at}.name"), name));
            }
            for (i, mount) in items(container.get("volumeMounts")).enumerate() {
                let volume = text(mount, "name");
                if !volumes.contains(volume) {
                    findings.causes.push(not_found(format!("{at}.volumeMounts[{i}].name"), volume));
                }
            }
            let amounts = |kind: &str| container.get("resources").and_then(|resources| resources.get(kind));
            for (name, request) in entries(amounts("requests")) {
                let milli = |amount: &Value| amount.as_str().and_then(quantity::milli);
                let limit = amounts("limits").and_then(|limits| limits.get(name)).and_then(milli);
                if limit.is_some_and(|limit| milli(request).is_some_and(|request| request > limit)) {
                    let given = request.as_str().unwrap_or_default();
                    let rule = format!("must be less than or equal to {name} limit");
                    findings.causes.push(invalid(format!("{at}.resources.requests"), given, &rule));
                }
            }
        }
    }
}

fn of_data(object: &Document, findings: &mut Findings) {
    for field in ["data", "binaryData"] {
        for (key, _) in entries(object.get(field)).filter(|(key, _)| !Form::DataKey.accepts(key)) {
            findings.causes.push(invalid(format!("{field}[{key}]"), key, Form::DataKey.rule()));
        }
    }
}

fn entries(map: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    map.and_then(Value::as_object).into_iter().flatten()
}
