//! Discovery of the served API: versions, groups, kinds, health, and the parts of `OpenAPI` that kubectl reads.

use super::ApiServer;
use super::failure::Failure;
use super::present::{self, Body};
use super::resource::Resource;
use http::{Method, Response, StatusCode};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The verbs of every kind.
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// Answers requests that are not about objects.
pub(super) fn answer(server: &ApiServer, path: &str, method: &Method) -> Result<Response<Body>, Failure> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let kinds = server.0.registry.all();
    let answer = match parts.as_slice() {
        ["healthz" | "livez" | "readyz", ..] => json!("ok"),
        // The oldest version with this API, for clients that compare it with their own.
        ["version"] => json!({"major": "1", "minor": "33", "gitVersion": "v1.33.0+embedded"}),
        ["api"] => json!({"kind": "APIVersions", "versions": ["v1"]}),
        ["apis"] => json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups(&kinds)}),
        ["api", version] => resources(&of_version(&kinds, "", version)?),
        ["apis", group, version] => resources(&of_version(&kinds, group, version)?),
        ["openapi", "v3"] => openapi_index(&kinds),
        ["openapi", "v3", "api", version] => openapi(&of_version(&kinds, "", version)?),
        ["openapi", "v3", "apis", group, version] => openapi(&of_version(&kinds, group, version)?),
        _ => return Err(Failure::no_route()),
    };
    match answer {
        _ if method != Method::GET => Err(Failure::method_not_allowed()),
        Value::String(text) => Ok(present::text("text/plain; charset=utf-8", text)),
        answer => Ok(present::json(StatusCode::OK, &answer)),
    }
}

/// Returns the kinds of a version of a group. Fails with 404 if there is none.
fn of_version<'a>(
    kinds: &'a [Arc<Resource>],
    group: &str,
    version: &str,
) -> Result<Vec<&'a Resource>, Failure> {
    let kinds = kinds.iter().filter(|kind| kind.group == group && kind.version == version);
    let kinds: Vec<_> = kinds.map(Arc::as_ref).collect();
    if kinds.is_empty() { Err(Failure::no_route()) } else { Ok(kinds) }
}

/// Returns the named groups with their versions, each as an `APIGroup`.
fn groups(kinds: &[Arc<Resource>]) -> Vec<Value> {
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for kind in kinds.iter().filter(|kind| !kind.group.is_empty()) {
        groups.entry(&kind.group).or_default().insert(&kind.version);
    }
    let group = |(name, versions): (&str, BTreeSet<&str>)| {
        let entry = |v: &&str| json!({"groupVersion": format!("{name}/{v}"), "version": v});
        let versions: Vec<_> = versions.iter().map(entry).collect();
        json!({"name": name, "versions": versions, "preferredVersion": versions.first()})
    };
    groups.into_iter().map(group).collect()
}

/// Returns an `APIResourceList` of the kinds and their subresources.
fn resources(kinds: &[&Resource]) -> Value {
    let mut resources = Vec::new();
    for kind in kinds {
        resources.push(json!({
            "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced,
            "kind": kind.kind, "verbs": VERBS, "shortNames": kind.short_names, "categories": kind.categories,
        }));
        for part in &kind.subresources {
            let verbs: &[&str] = match *part {
                "status" => &["get", "patch", "update"],
                "log" => &["get"],
                "finalize" => &["update"],
                _ => &["create"],
            };
            resources.push(json!({
                "name": format!("{}/{part}", kind.plural), "singularName": "", "namespaced": kind.namespaced,
                "kind": kind.kind, "verbs": verbs,
            }));
        }
    }
    let version = kinds.first().map(|kind| kind.api_version());
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources})
}

fn path_of(kind: &Resource) -> String {
    if kind.group.is_empty() { "api/v1".to_owned() } else { format!("apis/{}", kind.api_version()) }
}

/// Returns the index of the versions' `OpenAPI` documents.
fn openapi_index(kinds: &[Arc<Resource>]) -> Value {
    let entry = |path: String| (path.clone(), json!({"serverRelativeURL": format!("/openapi/v3/{path}")}));
    let paths: Map<String, Value> = kinds.iter().map(|kind| entry(path_of(kind))).collect();
    json!({"paths": paths})
}

/// Returns the `OpenAPI` v3 document of a version, with the parameters of each kind's methods and without schemas.
/// kubectl relies on `fieldValidation` and `dryRun` only if they are listed.
fn openapi(kinds: &[&Resource]) -> Value {
    let parameter =
        |name| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let parameters = ["dryRun", "fieldManager", "fieldValidation", "force"].map(parameter);
    let mut paths = Map::new();
    for kind in kinds {
        let method = json!({
            "parameters": parameters, "responses": {"200": {"description": "OK"}},
            "x-kubernetes-group-version-kind":
                {"group": kind.group, "version": kind.version, "kind": kind.kind},
        });
        let scope = if kind.namespaced { "namespaces/{namespace}/" } else { "" };
        let path = format!("/{}/{scope}{}", path_of(kind), kind.plural);
        paths.insert(path.clone(), json!({"post": method}));
        paths.insert(format!("{path}/{{name}}"), json!({"put": method, "patch": method, "delete": method}));
    }
    json!({"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "embedded"}, "paths": paths})
}
