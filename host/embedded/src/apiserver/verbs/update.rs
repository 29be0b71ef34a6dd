//! `PUT` and `PATCH`, and their common part: the computation of an object's new state from the old one and the
//! client's.

use super::create::create_object;
use crate::apiserver::call::Call;
use crate::apiserver::cascade::Cascade;
use crate::apiserver::failure::{Failure, invalid};
use crate::apiserver::metadata::{self, Document};
use crate::apiserver::patch::Patch;
use crate::apiserver::present::{self, Body};
use crate::apiserver::store::Object;
use crate::apiserver::{admission, input};
use http::{Response, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;

/// The part of an object that a request may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The whole object, without the status if the kind has a subresource for it.
    Main,
    /// Only the status.
    Status,
    /// The node of a pod, which otherwise only the server sets.
    Binding,
}

pub(crate) async fn replace(call: &Call, name: &str, part: Part) -> Result<Response<Body>, Failure> {
    if part == Part::Status {
        input::require_json(&call.body)?;
    }
    let asked = input::accept(call, input::parse_object(&call.body)?, Some(name))?;
    if call.resource.is_custom() && metadata::text(&asked, "resourceVersion").is_empty() {
        let cause = invalid("metadata.resourceVersion", "0", "must be specified for an update");
        return Err(call.resource.invalid(name, vec![cause]));
    }
    let object = update(call, name, part, |_| Ok(asked.clone())).await?;
    Ok(present::object(call, StatusCode::OK, &object))
}

pub(crate) async fn patch(call: &Call, name: &str, part: Part) -> Result<Response<Body>, Failure> {
    let patch = Patch::parse(&call.resource, &call.content_type, &call.body)?;
    let change = |old: &Document| input::accept(call, patch.change(&call.resource, old)?, Some(name));
    if let Patch::Apply(config) = &patch {
        if !call.query.flag("force") {
            return Err(Failure::not_implemented(
                "server-side apply needs force=true: this API server does not note who owns a field",
            ));
        }
        if part != Part::Status && call.server.store.get(&call.resource.collection, &call.key(name)).is_none()
        {
            match create_object(call, input::accept(call, config.clone(), Some(name))?).await {
                // Another request has just created the object, so the patch is applied to that one.
                Err(failure) if failure.is_already_exists() => {}
                created => return Ok(present::object(call, StatusCode::CREATED, &created?)),
            }
        }
    }
    let object = update(call, name, part, change).await?;
    Ok(present::object(call, StatusCode::OK, &object))
}

/// Changes the given part of an object to the result of `change`.
///
/// The result is computed outside of the store's lock, and stored only if the object has not changed in the meantime.
/// Otherwise it is computed again, unless the client names the version that it wants to change.
pub(crate) async fn update(
    call: &Call,
    name: &str,
    part: Part,
    change: impl Fn(&Document) -> Result<Document, Failure>,
) -> Result<Arc<Object>, Failure> {
    let (resource, key) = (&call.resource, call.key(name));
    loop {
        let old =
            call.server.store.get(&resource.collection, &key).ok_or_else(|| resource.not_found(name))?;
        let asked = change(old.document())?;
        let (uid, version) = (metadata::uid(&asked), metadata::text(&asked, "resourceVersion"));
        resource.check_version(old.document(), uid, version)?;
        let new = become_of(call, old.document(), asked, part);
        if part != Part::Binding {
            admission::validate(resource, &new, Some(old.document()))?;
        }
        if new == *old.document() {
            return Ok(old);
        }
        if call.query.dry_run()? {
            return Ok(Arc::new(Object::new(new, old.revision())));
        }
        let kinds = admission::custom_kinds(resource, &new)?;
        let stored = call.server.store.transact(|transaction| {
            let current =
                transaction.get(&resource.collection, &key).ok_or_else(|| resource.not_found(name))?;
            if current.revision() != old.revision() {
                return Ok(None);
            }
            if let Some(kinds) = kinds {
                call.server.registry.define(name, kinds);
            }
            let object = transaction.put(&resource.collection, new);
            admission::refresh_quotas(transaction, &key.namespace);
            if may_go(object.document()) {
                return Ok(Cascade::new(&call.server, transaction).finish(resource, &key));
            }
            Ok::<_, Failure>(Some(object))
        })?;
        if let (Some(object), durable) = stored {
            durable.reached().await?;
            return Ok(object);
        }
    }
}

/// True if an object that is being deleted can be removed.
fn may_go(object: &Document) -> bool {
    metadata::is_deleting(object)
        && metadata::grace(object) == 0
        && metadata::finalizers(object).next().is_none()
}

/// The fields of `metadata` that only the server changes.
const SERVER_OWNED: &[&str] = &[
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
    "namespace",
    "name",
    "generateName",
];

/// Returns the object's new state: the client's, within the part that the request may change.
fn become_of(call: &Call, old: &Document, asked: Document, part: Part) -> Document {
    let resource = &call.resource;
    let mut new = if part == Part::Status {
        let mut new = old.clone();
        set_or_remove(&mut new, "status", asked.get("status"));
        if !resource.is_custom()
            && let Some(metadata) = asked.get("metadata")
        {
            new.insert("metadata".to_owned(), metadata.clone());
        }
        new
    } else {
        let mut new = asked;
        if resource.has_status() {
            set_or_remove(&mut new, "status", old.get("status"));
        }
        new
    };
    let metadata = metadata::metadata_mut(&mut new);
    for &field in SERVER_OWNED {
        set_or_remove(metadata, field, metadata::field(old, field));
    }
    if part == Part::Main {
        admission::prepare_update(resource, &mut new, old);
        if resource.counts_generations && content(&new) != content(old) {
            metadata::bump_generation(&mut new);
        }
    }
    new
}

/// Returns an object's desired state: all fields except its head and its status.
fn content(object: &Document) -> Vec<(&String, &Value)> {
    let head = ["apiVersion", "kind", "metadata", "status"];
    object.iter().filter(|(name, _)| !head.contains(&name.as_str())).collect()
}

fn set_or_remove(map: &mut Document, field: &str, value: Option<&Value>) {
    match value {
        Some(value) => map.insert(field.to_owned(), json!(value)),
        None => map.remove(field),
    };
}
