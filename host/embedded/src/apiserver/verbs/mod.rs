//! The verbs for objects, one file for each.

mod bind;
mod create;
mod delete;
mod log;
mod read;
mod update;
mod watch;

pub(super) use bind::bind;
pub(super) use create::create;
pub(super) use delete::{delete, delete_collection};
pub(super) use log::log;
pub(super) use read::{get, list};
pub(super) use update::{Part, patch, replace};
pub(super) use watch::watch;

use crate::apiserver::metadata::{self, Document};
use crate::apiserver::resource::from_definition;
use crate::apiserver::store::Key;
use crate::apiserver::{Server, admission};
use serde_json::json;

/// Serves the custom kinds that were kept, and makes the namespaces that every cluster has.
pub(super) fn prepare(server: &Server) {
    for definition in server.store.read().all("customresourcedefinitions.apiextensions.k8s.io") {
        let name = metadata::name(definition.document());
        match from_definition(definition.document()) {
            Ok(kinds) => server.registry.define(name, kinds),
            Err(error) => tracing::warn!(name, %error, "a custom kind cannot be served"),
        }
    }
    let Some(resource) = server.registry.find("", "v1", "namespaces") else { return };
    for name in ["default", "kube-system", "kube-public"] {
        if server.store.get(&resource.collection, &Key::new("", name)).is_none() {
            let mut namespace = Document::new();
            namespace.insert("apiVersion".to_owned(), json!("v1"));
            namespace.insert("kind".to_owned(), json!("Namespace"));
            namespace.insert("metadata".to_owned(), json!({"name": name}));
            admission::prepare_create(&resource, &mut namespace);
            let written = server.store.transact(|transaction| {
                transaction.put(&resource.collection, namespace);
                Ok::<_, std::convert::Infallible>(())
            });
            drop(written);
        }
    }
}
