//! As much of `OpenAPI` v3 as clients need to see which parameters a kind's methods take: kubectl asks before it
//! relies on `fieldValidation` and `dryRun`. Schemas are told for custom kinds only.

use crate::apiserver::resource::Resource;
use crate::apiserver::schema::Schema;
use serde_json::{Map, Value, json};
use std::sync::Arc;

fn path_of(resource: &Resource) -> String {
    if resource.group.is_empty() { "api/v1".to_owned() } else { format!("apis/{}", resource.api_version()) }
}

/// Where to find the document of each version.
pub(super) fn index(kinds: &[Arc<Resource>]) -> Value {
    let paths: Map<String, Value> = kinds
        .iter()
        .map(|kind| {
            let path = path_of(kind);
            (path.clone(), json!({"serverRelativeURL": format!("/openapi/v3/{path}")}))
        })
        .collect();
    json!({"paths": paths})
}

/// The document of a version.
pub(super) fn document(kinds: &[Arc<Resource>], group: &str, version: &str) -> Option<Value> {
    let kinds: Vec<_> = kinds.iter().filter(|kind| kind.group == group && kind.version == version).collect();
    kinds.first()?;
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for kind in kinds {
        let scope = if kind.namespaced { "namespaces/{namespace}/" } else { "" };
        let path = format!("/{}/{scope}{}", path_of(kind), kind.plural);
        paths.insert(path.clone(), json!({"get": method(kind, &[]), "post": method(kind, &WRITING)}));
        let item = json!({
            "get": method(kind, &[]), "put": method(kind, &WRITING), "patch": method(kind, &PATCHING),
            "delete": method(kind, &["dryRun", "gracePeriodSeconds", "propagationPolicy"]),
        });
        paths.insert(format!("{path}/{{name}}"), item);
        schemas.insert(schema_name(kind), schema(kind));
    }
    Some(json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "embedded"},
        "paths": paths, "components": {"schemas": schemas},
    }))
}

const WRITING: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];
const PATCHING: [&str; 4] = ["dryRun", "fieldManager", "fieldValidation", "force"];

fn kind_of(kind: &Resource) -> Value {
    json!({"group": kind.group, "version": kind.version, "kind": kind.kind})
}

fn method(kind: &Resource, parameters: &[&str]) -> Value {
    let parameter =
        |name: &&str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    json!({
        "parameters": parameters.iter().map(parameter).collect::<Vec<_>>(),
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-group-version-kind": kind_of(kind),
    })
}

fn schema_name(kind: &Resource) -> String {
    let group = if kind.group.is_empty() { "core" } else { &kind.group };
    format!("{group}.{}.{}", kind.version, kind.kind)
}

fn schema(kind: &Resource) -> Value {
    let mut schema = match &kind.schema {
        Schema::Custom(schema) if schema.is_object() => (**schema).clone(),
        _ => json!({"type": "object"}),
    };
    schema["x-kubernetes-group-version-kind"] = json!([kind_of(kind)]);
    schema
}
