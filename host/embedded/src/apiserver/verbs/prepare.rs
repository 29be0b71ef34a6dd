//! What is there before the first request.

use crate::apiserver::Server;
use crate::apiserver::admission;
use crate::apiserver::metadata::{self, Document};
use crate::apiserver::resource::from_definition;
use crate::apiserver::store::Key;
use serde_json::json;

/// Serves the custom kinds that were kept, and makes the namespaces that every cluster has.
pub(in crate::apiserver) fn prepare(server: &Server) {
    let definitions: Vec<_> =
        server.store.read().all("customresourcedefinitions.apiextensions.k8s.io").cloned().collect();
    for definition in definitions {
        match from_definition(definition.document()) {
            Ok(kinds) => server.registry.define(metadata::name(definition.document()), kinds),
            Err(error) => {
                let name = metadata::name(definition.document());
                tracing::warn!(name, %error, "a custom kind cannot be served");
            }
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
