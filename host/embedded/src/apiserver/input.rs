//! Parsing of objects that clients send.

use super::call::Call;
use super::failure::Failure;
use super::metadata::{self, Document};
use super::protobuf;
use super::resource::Resource;
use serde_json::{Value, json};

/// The size limit of a body, in bytes; the same as in Kubernetes.
pub(super) const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// Parses JSON, or the protobuf of the few kinds for which kubectl sends nothing else.
pub(super) fn parse(body: &[u8]) -> Result<Value, Failure> {
    if protobuf::is_protobuf(body) {
        return protobuf::parse(body);
    }
    serde_json::from_slice(body)
        .map_err(|error| Failure::bad_request(format!("cannot read the body as JSON: {error}")))
}

/// Fails for protobuf: of a status nothing is read there.
pub(super) fn require_json(body: &[u8]) -> Result<(), Failure> {
    if protobuf::is_protobuf(body) { Err(protobuf::unsupported("a status")) } else { Ok(()) }
}

pub(super) fn parse_object(body: &[u8]) -> Result<Document, Failure> {
    match parse(body)? {
        Value::Object(document) => Ok(document),
        _ => Err(Failure::bad_request("cannot read the body: an object is needed")),
    }
}

/// Brings a client's object into the kind's form. Sets or checks its type, and its name and namespace according to the
/// path. Drops or refuses unknown fields according to `fieldValidation`.
pub(super) fn accept(call: &Call, mut document: Document, name: Option<&str>) -> Result<Document, Failure> {
    let resource = &call.resource;
    check_type(resource, &mut document)?;
    check_place(call, &mut document, name)?;
    let (document, unknown) = resource.decode(document).map_err(|error| {
        let (kind, version) = (&resource.kind, &resource.version);
        Failure::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {error}"))
    })?;
    if call.query.text("fieldValidation") == Some("Strict") && !unknown.is_empty() {
        let fields: Vec<_> = unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
        return Err(Failure::bad_request(format!("strict decoding error: {}", fields.join(", "))));
    }
    Ok(document)
}

fn check_type(resource: &Resource, document: &mut Document) -> Result<(), Failure> {
    let expected = [("apiVersion", resource.api_version()), ("kind", resource.kind.clone())];
    for (field, expected) in expected {
        match document.get(field).and_then(Value::as_str).filter(|given| !given.is_empty()) {
            None => {
                document.insert(field.to_owned(), json!(expected));
            }
            Some(given) if given == expected => {}
            Some(given) => {
                return Err(Failure::bad_request(format!(
                    "the {field} in the data ({given}) does not match the expected {field} ({expected})"
                )));
            }
        }
    }
    Ok(())
}

/// Sets name and namespace to those of the path. Fails if the object states others.
fn check_place(call: &Call, document: &mut Document, name: Option<&str>) -> Result<(), Failure> {
    let metadata = metadata::metadata_mut(document);
    // Owners of fields are not recorded.
    metadata.remove("managedFields");
    let namespace = call.required_namespace()?;
    if namespace.is_none() {
        metadata.remove("namespace");
    }
    for (field, of_path) in [("name", name), ("namespace", namespace)] {
        let Some(of_path) = of_path else { continue };
        let given = metadata.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
        if let Some(given) = given.filter(|given| *given != of_path) {
            return Err(Failure::bad_request(format!(
                "the {field} of the object ({given}) does not match the {field} on the URL ({of_path})"
            )));
        }
        metadata.insert(field.to_owned(), json!(of_path));
    }
    Ok(())
}
