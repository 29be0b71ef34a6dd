//! What is served, for clients that ask: versions, groups, kinds, health, and as much of `OpenAPI` as kubectl reads.

use super::ApiServer;
use super::failure::Failure;
use super::present::{self, Body};
use super::resource::Resource;
use super::route::Route;
use http::{Method, Response, StatusCode};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Answers what is not about objects.
pub(super) fn answer(
    server: &ApiServer,
    route: &Route<'_>,
    method: &Method,
) -> Result<Response<Body>, Failure> {
    if *route != Route::Unknown && method != Method::GET {
        return Err(Failure::method_not_allowed());
    }
    let kinds = server.0.registry.all();
    let value = match *route {
        Route::Health => return Ok(present::text("text/plain; charset=utf-8", "ok")),
        // The oldest version whose API this is, for clients that compare it with their own.
        Route::Version => json!({"major": "1", "minor": "33", "gitVersion": "v1.33.0+embedded"}),
        Route::CoreVersions => json!({"kind": "APIVersions", "versions": ["v1"]}),
        Route::Groups => {
            let groups: Vec<Value> =
                versions(&kinds).iter().map(|(name, versions)| group(name, versions)).collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        }
        Route::Group(name) => {
            let groups = versions(&kinds);
            let found = groups.iter().find(|(group, _)| *group == name);
            let (name, versions) = found.ok_or_else(Failure::no_route)?;
            group(name, versions)
        }
        Route::Kinds { group, version } => resources(&of_version(&kinds, group, version)?),
        Route::OpenApiIndex => openapi_index(&kinds),
        Route::OpenApi { group, version } => openapi(&of_version(&kinds, group, version)?),
        Route::Objects(_) | Route::Unknown => return Err(Failure::no_route()),
    };
    Ok(present::json(StatusCode::OK, &value))
}

/// What can be done with every kind.
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The kinds of a version of a group. 404 when there is none.
fn of_version<'a>(
    kinds: &'a [Arc<Resource>],
    group: &str,
    version: &str,
) -> Result<Vec<&'a Resource>, Failure> {
    let kinds = kinds.iter().filter(|kind| kind.group == group && kind.version == version);
    let kinds: Vec<_> = kinds.map(Arc::as_ref).collect();
    if kinds.is_empty() { Err(Failure::no_route()) } else { Ok(kinds) }
}

/// The named groups and their versions, in the order of the table.
fn versions(kinds: &[Arc<Resource>]) -> Vec<(&str, Vec<&str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for kind in kinds.iter().filter(|kind| !kind.group.is_empty()) {
        match groups.iter_mut().find(|(group, _)| *group == kind.group) {
            Some((_, versions)) if versions.contains(&kind.version.as_str()) => {}
            Some((_, versions)) => versions.push(&kind.version),
            None => groups.push((&kind.group, vec![&kind.version])),
        }
    }
    groups
}

/// `APIGroup`
fn group(name: &str, versions: &[&str]) -> Value {
    let entry = |v: &&str| json!({"groupVersion": format!("{name}/{v}"), "version": v});
    json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": name,
        "versions": versions.iter().map(entry).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map_or(Value::Null, entry),
    })
}

/// `APIResourceList`
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

/// Where to find the `OpenAPI` document of each version.
fn openapi_index(kinds: &[Arc<Resource>]) -> Value {
    let paths: Map<String, Value> = kinds
        .iter()
        .map(|kind| {
            let path = path_of(kind);
            (path.clone(), json!({"serverRelativeURL": format!("/openapi/v3/{path}")}))
        })
        .collect();
    json!({"paths": paths})
}

fn path_of(kind: &Resource) -> String {
    if kind.group.is_empty() { "api/v1".to_owned() } else { format!("apis/{}", kind.api_version()) }
}

/// The `OpenAPI` v3 document of a version: the parameters of each kind's methods, and no schemas. kubectl relies on
/// `fieldValidation` and `dryRun` only where they are listed.
fn openapi(kinds: &[&Resource]) -> Value {
    let parameters: Vec<Value> = ["dryRun", "fieldManager", "fieldValidation", "force"]
        .iter()
        .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}}))
        .collect();
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
