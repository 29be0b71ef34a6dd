//! `DELETE`: an object, or all that a selector matches.

use crate::apiserver::call::Call;
use crate::apiserver::cascade::{Cascade, Deleted};
use crate::apiserver::deletion::DeleteOptions;
use crate::apiserver::failure::Failure;
use crate::apiserver::present::{self, Body, Page};
use crate::apiserver::selector::Selector;
use crate::apiserver::store::{Key, Object};
use http::{Response, StatusCode};
use std::sync::Arc;

/// Kinds whose deletion is answered with the object even if it is gone. For the others, the answer is a `Status` then.
const ANSWERED_WITH_THE_OBJECT: &[&str] =
    &["pods", "services", "serviceaccounts", "resourcequotas", "persistentvolumeclaims", "persistentvolumes"];

pub(crate) async fn delete(call: &Call, name: &str) -> Result<Response<Body>, Failure> {
    let options = DeleteOptions::parse(&call.body, &call.query)?;
    let resource = &call.resource;
    if resource.is_core("namespaces") && matches!(name, "default" | "kube-system" | "kube-public") {
        return Err(resource.forbidden(name, "this namespace may not be deleted"));
    }
    let deleted = delete_object(call, &call.key(name), &options).await?;
    let with_object =
        ANSWERED_WITH_THE_OBJECT.contains(&resource.plural.as_str()) && resource.group.is_empty();
    Ok(match &deleted {
        Deleted::Removed(object) if !with_object => {
            present::json(StatusCode::OK, &present::success(resource, name, object.document()))
        }
        deleted => present::object(call, StatusCode::OK, deleted.object()),
    })
}

/// Deletes an object according to `options`.
pub(crate) async fn delete_object(
    call: &Call,
    key: &Key,
    options: &DeleteOptions,
) -> Result<Deleted, Failure> {
    let resource = &call.resource;
    if options.dry_run {
        let object = call.server.store.get(&resource.collection, key);
        let object = object.ok_or_else(|| resource.not_found(&key.name))?;
        options.check(resource, object.document())?;
        return Ok(Deleted::Removed(object));
    }
    let (deleted, durable) = call
        .server
        .store
        .transact(|transaction| Cascade::new(&call.server, transaction).delete(resource, key, options))?;
    durable.reached().await?;
    Ok(deleted)
}

pub(crate) async fn delete_collection(call: &Call) -> Result<Response<Body>, Failure> {
    let options = DeleteOptions::parse(&call.body, &call.query)?;
    let selector = Selector::parse(&call.query, &call.resource)?;
    if call.resource.is_core("namespaces") || (call.resource.namespaced && call.namespace.is_none()) {
        return Err(Failure::method_not_allowed());
    }
    let (_, objects) =
        call.server.store.list(&call.resource.collection, call.namespace.as_deref(), None, None)?;
    let mut deleted: Vec<Arc<Object>> = Vec::new();
    for object in objects.iter().filter(|object| selector.matches(object.document())) {
        match delete_object(call, &object.key(), &options).await {
            Ok(outcome) => deleted.push(outcome.object().clone()),
            Err(failure) if failure.code() == StatusCode::NOT_FOUND => {}
            Err(failure) => return Err(failure),
        }
    }
    let page = Page { revision: call.server.store.read().revision(), ..Page::default() };
    Ok(present::list(call, &page, &deleted))
}
