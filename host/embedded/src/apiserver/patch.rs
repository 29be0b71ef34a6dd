//! Patches: changes of objects.

use super::failure::Failure;
use super::metadata::Document;
use super::resource::Resource;
use super::{input, strategic};
use bytes::Bytes;
use serde_json::Value;

/// A patch in one of four forms.
#[derive(Debug)]
pub(super) enum Patch {
    /// A list of operations (RFC 6902).
    Json(json_patch::Patch),
    /// A JSON merge patch (RFC 7396).
    Merge(Value),
    /// A strategic merge patch: as a merge patch, but lists merge by the rules of their kind.
    Strategic(Document),
    /// The fields that a manager wants (server-side apply with `force`). Owners of fields are not recorded, so fields
    /// that the manager no longer sets stay.
    Apply(Document),
}

const CONTENT_TYPES: &str = "application/json-patch+json, application/merge-patch+json, \
                             application/strategic-merge-patch+json, application/apply-patch+yaml";

impl Patch {
    /// Parses a patch; its form is in the `Content-Type`.
    pub(super) fn parse(resource: &Resource, content_type: &str, body: &Bytes) -> Result<Self, Failure> {
        match content_type {
            "application/json-patch+json" => serde_json::from_slice(body)
                .map(Self::Json)
                .map_err(|error| Failure::bad_request(format!("cannot read the JSON patch: {error}"))),
            "application/merge-patch+json" => input::parse(body).map(Self::Merge),
            "application/strategic-merge-patch+json" if !resource.is_custom() => {
                input::parse_object(body).map(Self::Strategic)
            }
            "application/apply-patch+yaml" => input::parse_object(body).map(Self::Apply),
            _ => Err(Failure::unsupported_media_type(CONTENT_TYPES)),
        }
    }

    /// Applies the patch to `old` and returns the result.
    pub(super) fn change(&self, resource: &Resource, old: &Document) -> Result<Document, Failure> {
        let mut value = Value::Object(old.clone());
        match self {
            Self::Json(patch) => {
                json_patch::patch(&mut value, patch).map_err(|error| {
                    Failure::unprocessable(format!("the JSON patch does not apply: {error}"))
                })?;
            }
            Self::Merge(patch) => json_patch::merge(&mut value, patch),
            Self::Apply(patch) if resource.is_custom() => {
                json_patch::merge(&mut value, &Value::Object(patch.clone()));
            }
            Self::Strategic(patch) | Self::Apply(patch) => {
                let mut document = old.clone();
                strategic::merge(&mut document, patch, "")?;
                return Ok(document);
            }
        }
        match value {
            Value::Object(document) => Ok(document),
            _ => Err(Failure::bad_request("the patch does not leave an object")),
        }
    }
}
