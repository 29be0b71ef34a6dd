//! The served kinds: one table for routing, discovery, decoding and merging.

mod built_in;
mod codec;
mod custom;
mod registry;
mod rules;

pub(super) use custom::{collection_of, from_definition};
pub(super) use registry::Registry;

use super::failure::{Cause, Failure, cause, qualified};
use super::metadata::{self, Document};
use super::store::{CollectionName, Key};
use codec::Codec;
use http::StatusCode;
use serde_json::Value;

/// A kind at one API version.
#[derive(Debug)]
pub(super) struct Resource {
    /// The API group; `""` is the core group.
    pub(super) group: String,
    pub(super) version: String,
    pub(super) plural: String,
    pub(super) singular: String,
    pub(super) kind: String,
    pub(super) short_names: Vec<String>,
    pub(super) categories: Vec<String>,
    pub(super) namespaced: bool,
    /// The subresources beside the object itself: `status`, `log`, `binding` ...
    pub(super) subresources: Vec<&'static str>,
    /// True if changes of the desired state are counted in `metadata.generation`.
    pub(super) counts_generations: bool,
    /// The kind's own columns in tables, which a `CustomResourceDefinition` may define.
    pub(super) columns: Vec<CustomColumn>,
    /// The collection in which the kind's objects are stored.
    pub(super) collection: CollectionName,
    /// The rules and defaults of the kind's fields.
    pub(super) schema: Value,
    codec: Codec,
}

/// A column that a `CustomResourceDefinition` defines (`additionalPrinterColumns`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CustomColumn {
    pub(super) name: String,
    pub(super) kind: String,
    /// 0 if the column is always shown; a higher value if it is only shown with `-o wide`.
    pub(super) priority: i32,
    /// A simple JSON path, e.g. `.status.phase`.
    pub(super) path: String,
}

impl Resource {
    /// Returns `v1` or `group/version`.
    pub(super) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// True for this kind of the core group.
    pub(super) fn is_core(&self, plural: &str) -> bool {
        self.group.is_empty() && self.plural == plural
    }

    /// True for a kind that a `CustomResourceDefinition` defines.
    pub(super) fn is_custom(&self) -> bool {
        matches!(self.codec, Codec::Schema)
    }

    /// True if the kind has the subresource `status`.
    pub(super) fn has_status(&self) -> bool {
        self.subresources.contains(&"status")
    }

    /// Checks the types of an object's fields and brings it into the kind's form. Also returns the unknown fields.
    pub(super) fn decode(&self, document: Document) -> Result<(Document, Vec<String>), String> {
        self.codec.decode(document, &self.schema)
    }

    /// 404: no such object.
    pub(super) fn not_found(&self, name: &str) -> Failure {
        let message = format!("{} {name:?} not found", self.collection);
        self.failure(StatusCode::NOT_FOUND, "NotFound", name, &message)
    }

    /// 409: create found the name taken.
    pub(super) fn already_exists(&self, name: &str) -> Failure {
        let message = format!("{} {name:?} already exists", self.collection);
        self.failure(StatusCode::CONFLICT, "AlreadyExists", name, &message)
    }

    /// 409: a precondition does not hold.
    pub(super) fn conflict(&self, name: &str, why: &str) -> Failure {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", self.collection);
        self.failure(StatusCode::CONFLICT, "Conflict", name, &message)
    }

    /// Fails with 409 if a client means another object of the same name, or another version of it. `""` means any.
    pub(super) fn check_version(&self, object: &Document, uid: &str, version: &str) -> Result<(), Failure> {
        let name = metadata::name(object);
        if !uid.is_empty() && uid != metadata::uid(object) {
            let found = metadata::uid(object);
            let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {found}");
            return Err(self.conflict(name, &why));
        }
        if !version.is_empty() && version != metadata::text(object, "resourceVersion") {
            return Err(self.conflict(
                name,
                "the object has been modified; please apply your changes to the latest version and try again",
            ));
        }
        Ok(())
    }

    /// 403: an admission rule refuses the object.
    pub(super) fn forbidden(&self, name: &str, why: &str) -> Failure {
        let message = format!("{} {name:?} is forbidden: {why}", self.collection);
        self.failure(StatusCode::FORBIDDEN, "Forbidden", name, &message)
    }

    /// 403: nothing is created in a namespace that is being deleted. The cause distinguishes this from other refusals
    /// for clients.
    pub(super) fn namespace_terminating(&self, name: &str, namespace: &str) -> Failure {
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let failure = self.forbidden(name, &why);
        let terminating = cause("NamespaceTerminating", "metadata.namespace", why);
        failure.about(&self.group, &self.plural, name, vec![terminating])
    }

    /// 422: the object breaks rules of its kind.
    pub(super) fn invalid(&self, name: &str, causes: Vec<Cause>) -> Failure {
        let each: Vec<_> = causes.iter().map(|c| format!("{}: {}", c.field, c.message)).collect();
        let kind = qualified(&self.group, &self.kind);
        Failure::unprocessable(format!("{kind} {name:?} is invalid: {}", each.join(", "))).about(
            &self.group,
            &self.kind,
            name,
            causes,
        )
    }

    fn failure(&self, code: StatusCode, reason: &str, name: &str, message: &str) -> Failure {
        Failure::new(code, reason, message).about(&self.group, &self.plural, name, Vec::new())
    }

    /// Returns the key under which an object of this kind is stored.
    pub(super) fn key(&self, namespace: Option<&str>, name: &str) -> Key {
        Key::new(namespace.filter(|_| self.namespaced).unwrap_or_default(), name)
    }
}
