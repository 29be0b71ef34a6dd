//! `POST`: a new object.

use crate::apiserver::call::Call;
use crate::apiserver::cascade::Cascade;
use crate::apiserver::deletion::DeleteOptions;
use crate::apiserver::failure::Failure;
use crate::apiserver::metadata::{self, Document};
use crate::apiserver::present::{self, Body};
use crate::apiserver::store::{Key, Object, Transaction};
use crate::apiserver::{admission, input, names};
use http::{Response, StatusCode};
use serde_json::json;
use std::sync::Arc;

pub(crate) async fn create(call: &Call) -> Result<Response<Body>, Failure> {
    let document = input::accept(call, input::parse_object(&call.body)?, None)?;
    let object = create_object(call, document).await?;
    Ok(present::object(call, StatusCode::CREATED, &object))
}

/// Creates the object, under a generated name if it only has a prefix.
pub(crate) async fn create_object(call: &Call, mut document: Document) -> Result<Arc<Object>, Failure> {
    if !metadata::text(&document, "resourceVersion").is_empty() {
        return Err(Failure::bad_request("resourceVersion should not be set on objects to be created"));
    }
    let prefix = metadata::text(&document, "generateName");
    if metadata::name(&document).is_empty() && !prefix.is_empty() {
        let name = json!(names::generated_name(prefix));
        metadata::metadata_mut(&mut document).insert("name".to_owned(), name);
    }
    let resource = &call.resource;
    admission::prepare_create(resource, &mut document);
    admission::validate(resource, &document, None)?;
    let kinds = admission::custom_kinds(resource, &document)?;
    let key = Key::new(metadata::namespace(&document), metadata::name(&document));
    let dry_run = call.query.dry_run()?;
    let (object, durable) = call.server.store.transact(|transaction| {
        check_place(call, transaction, &document)?;
        if transaction.get(&resource.collection, &key).is_some() {
            return Err(resource.already_exists(&key.name));
        }
        admission::admit(resource, &mut document, transaction.state())?;
        if dry_run {
            return Ok(Arc::new(Object::new(document, 0)));
        }
        if let Some(kinds) = kinds {
            call.server.registry.define(&key.name, kinds);
        }
        let object = transaction.put(&resource.collection, document);
        admission::refresh_quotas(transaction, &key.namespace);
        collect_if_orphaned(call, transaction, &object, &key);
        Ok(object)
    })?;
    durable.reached().await?;
    Ok(object)
}

/// Fails if the namespace does not exist or is being deleted.
fn check_place(call: &Call, transaction: &Transaction<'_>, document: &Document) -> Result<(), Failure> {
    let namespace = metadata::namespace(document);
    if namespace.is_empty() {
        return Ok(());
    }
    let found = transaction.get("namespaces", &Key::new("", namespace));
    match found {
        None => Err(Failure::no_namespace(namespace)),
        Some(found) if metadata::is_deleting(found.document()) => {
            Err(call.resource.namespace_terminating(metadata::name(document), namespace))
        }
        Some(_) => Ok(()),
    }
}

/// Deletes an object whose owners are all gone, as the garbage collector of Kubernetes does.
fn collect_if_orphaned(call: &Call, transaction: &mut Transaction<'_>, object: &Object, key: &Key) {
    if metadata::owner_uids(object.document()).next().is_none() {
        return;
    }
    let cascade = Cascade::new(&call.server, transaction);
    if !cascade.has_living_owner(object.document()) {
        let _ = cascade.delete(&call.resource, key, &DeleteOptions::default());
    }
}
