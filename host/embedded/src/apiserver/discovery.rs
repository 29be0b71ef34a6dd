//! What is served, told to clients that ask: versions, groups, kinds, health.

use super::ApiServer;
use super::body::Body;
use super::failure::Failure;
use super::present;
use super::resource::Resource;
use super::route::Route;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;

/// The version of Kubernetes whose API is followed.
const MAJOR: &str = "1";
const MINOR: &str = "32";

/// Answers what is not about objects.
pub(super) fn answer(
    server: &ApiServer,
    route: &Route<'_>,
    method: &Method,
    _accept: &str,
) -> Result<Response<Body>, Failure> {
    if method != Method::GET {
        return Err(if *route == Route::Unknown {
            Failure::no_route()
        } else {
            Failure::method_not_allowed()
        });
    }
    let kinds = server.0.registry.all();
    let value = match *route {
        Route::Health => {
            let mut response = Response::new(Body::whole("ok"));
            response.headers_mut().insert(
                http::header::CONTENT_TYPE,
                http::HeaderValue::from_static("text/plain; charset=utf-8"),
            );
            return Ok(response);
        }
        Route::Version => version(),
        Route::CoreVersions => json!({"kind": "APIVersions", "versions": ["v1"]}),
        Route::Groups => {
            let groups: Vec<Value> = groups(&kinds).iter().map(|name| group(&kinds, name)).collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        }
        Route::Group(name) => {
            let mut found = group(&kinds, name);
            if found["versions"].as_array().is_none_or(Vec::is_empty) {
                return Err(Failure::no_route());
            }
            found["kind"] = json!("APIGroup");
            found["apiVersion"] = json!("v1");
            found
        }
        Route::Kinds { group, version } => {
            let kinds: Vec<_> = kinds.iter().filter(|r| r.group == group && r.version == version).collect();
            let Some(first) = kinds.first() else { return Err(Failure::no_route()) };
            let resources: Vec<Value> = kinds.iter().flat_map(|resource| entries(resource)).collect();
            json!({
                "kind": "APIResourceList", "apiVersion": "v1",
                "groupVersion": first.api_version(), "resources": resources,
            })
        }
        _ => return Err(Failure::no_route()),
    };
    Ok(present::json(StatusCode::OK, &value))
}

fn version() -> Value {
    json!({
        "major": MAJOR, "minor": MINOR, "gitVersion": format!("v{MAJOR}.{MINOR}.0+embedded"), "gitCommit": "",
        "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// The named groups, in the order of the table.
fn groups(kinds: &[Arc<Resource>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for kind in kinds.iter().filter(|kind| !kind.group.is_empty()) {
        if !names.contains(&kind.group) {
            names.push(kind.group.clone());
        }
    }
    names
}

fn group(kinds: &[Arc<Resource>], name: &str) -> Value {
    let mut versions: Vec<&str> = Vec::new();
    for kind in kinds.iter().filter(|kind| kind.group == name) {
        if !versions.contains(&kind.version.as_str()) {
            versions.push(&kind.version);
        }
    }
    let told = |v: &&str| json!({"groupVersion": format!("{name}/{v}"), "version": v});
    json!({
        "name": name, "versions": versions.iter().map(told).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map_or(Value::Null, told),
    })
}

fn verbs() -> [&'static str; 8] {
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
}

fn subresource_verbs(name: &str) -> &'static [&'static str] {
    match name {
        "status" => &["get", "patch", "update"],
        "log" => &["get"],
        "finalize" => &["update"],
        _ => &["create"],
    }
}

fn entries(resource: &Resource) -> Vec<Value> {
    let mut entry = json!({
        "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
        "kind": resource.kind, "verbs": verbs(),
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    let mut entries = vec![entry];
    for &name in &resource.subresources {
        entries.push(json!({
            "name": format!("{}/{name}", resource.plural), "singularName": "", "namespaced": resource.namespaced,
            "kind": resource.kind, "verbs": subresource_verbs(name),
        }));
    }
    entries
}
