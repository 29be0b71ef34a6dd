//! Describes a request to a Kubernetes API server.

use axum::body::Bytes;
use http::{Method, Uri};
use serde_json::Value;

/// The description of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RequestSummary {
    /// Verb and kind, such as `create pods`.
    pub(super) what: String,
    /// Verb, kind and path; the path of a creation includes the object's name.
    pub(super) line: String,
    /// True for a watch.
    pub(super) is_watch: bool,
}

impl RequestSummary {
    pub(super) fn from_request(method: &Method, uri: &Uri, body: &Bytes) -> Self {
        let is_watch = uri
            .query()
            .is_some_and(|query| query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1")));
        let steps: Vec<&str> = uri.path().split('/').filter(|step| !step.is_empty()).collect();
        // The part after group and version. Objects of a namespace have the namespace before their kind.
        let rest = match steps.first() {
            Some(&"api") => steps.get(2..),
            Some(&"apis") => steps.get(3..),
            _ => None,
        };
        let rest = rest.unwrap_or_default();
        let rest = if rest.first() == Some(&"namespaces") && rest.len() > 2 { &rest[2..] } else { rest };
        let (kind, named) = (rest.first().copied().unwrap_or("-"), rest.len() > 1);
        let verb = match *method {
            Method::GET if is_watch => "watch",
            Method::GET if named => "read",
            Method::GET => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if named => "delete",
            Method::DELETE => "delete-all",
            _ => "other",
        };
        let name = (verb == "create").then(|| name(body)).flatten();
        let path = uri.path();
        let line = match name {
            Some(name) => format!("{verb} {kind} {path}/{name}"),
            None => format!("{verb} {kind} {path}"),
        };
        Self { what: format!("{verb} {kind}"), line, is_watch }
    }
}

fn name(body: &Bytes) -> Option<String> {
    let object: Value = serde_json::from_slice(body).ok()?;
    Some(object["metadata"]["name"].as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_summarized_as_verb_resource_and_path() {
        for (method, uri, line) in [
            (Method::GET, "/api/v1/pods?&watch=true&x=1", "watch pods /api/v1/pods"),
            (Method::GET, "/api/v1/namespaces", "list namespaces /api/v1/namespaces"),
            (Method::DELETE, "/api/v1/namespaces/a", "delete namespaces /api/v1/namespaces/a"),
            (Method::PUT, "/apis/x.io/v1/namespaces/a/ys/b", "update ys /apis/x.io/v1/namespaces/a/ys/b"),
            (Method::DELETE, "/api/v1/namespaces/a/pods", "delete-all pods /api/v1/namespaces/a/pods"),
        ] {
            let about = RequestSummary::from_request(&method, &uri.parse().unwrap(), &Bytes::new());
            assert_eq!((about.line.as_str(), about.is_watch), (line, uri.contains("watch")));
        }
        let body = Bytes::from_static(br#"{"metadata": {"name": "b"}}"#);
        let about =
            RequestSummary::from_request(&Method::POST, &"/api/v1/namespaces/a/pods".parse().unwrap(), &body);
        assert_eq!(about.line, "create pods /api/v1/namespaces/a/pods/b");
    }
}
