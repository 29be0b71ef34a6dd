//! What is served, told to clients that ask: versions, groups, kinds, health.

mod aggregated;
mod groups;
mod openapi;

use super::ApiServer;
use super::body::Body;
use super::failure::Failure;
use super::present;
use super::route::Route;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Response, StatusCode};
use serde_json::{Value, json};

/// The version of Kubernetes whose API is followed.
const MAJOR: &str = "1";
const MINOR: &str = "33";

/// Answers what is not about objects.
pub(super) fn answer(
    server: &ApiServer,
    route: &Route<'_>,
    method: &Method,
    accept: &str,
) -> Result<Response<Body>, Failure> {
    if *route == Route::Unknown {
        return Err(Failure::no_route());
    }
    if method != Method::GET {
        return Err(Failure::method_not_allowed());
    }
    let kinds = server.0.registry.all();
    let value = match *route {
        Route::Health => return Ok(typed("text/plain; charset=utf-8", Body::whole("ok"))),
        Route::Version => version(),
        Route::CoreVersions | Route::Groups if aggregated::is_wanted(accept) => {
            let all = aggregated::list(&kinds, *route == Route::CoreVersions);
            return Ok(typed(aggregated::CONTENT_TYPE, Body::whole(all.to_string())));
        }
        Route::CoreVersions => json!({"kind": "APIVersions", "versions": ["v1"]}),
        Route::Groups => groups::list(&kinds),
        Route::Group(name) => groups::one(&kinds, name).ok_or_else(Failure::no_route)?,
        Route::Kinds { group, version } => {
            groups::kinds(&kinds, group, version).ok_or_else(Failure::no_route)?
        }
        Route::OpenApiIndex => openapi::index(&kinds),
        Route::OpenApi { group, version } => {
            openapi::document(&kinds, group, version).ok_or_else(Failure::no_route)?
        }
        Route::Objects(_) | Route::Review(_) | Route::Unknown => return Err(Failure::no_route()),
    };
    Ok(present::json(StatusCode::OK, &value))
}

fn typed(content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn version() -> Value {
    json!({
        "major": MAJOR, "minor": MINOR, "gitVersion": format!("v{MAJOR}.{MINOR}.0+embedded"), "gitCommit": "",
        "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// What can be done with every kind.
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// What can be done with a subresource.
fn subresource_verbs(name: &str) -> &'static [&'static str] {
    match name {
        "status" => &["get", "patch", "update"],
        "log" => &["get"],
        "finalize" => &["update"],
        _ => &["create"],
    }
}
