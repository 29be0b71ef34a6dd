//! The spans, one function for each kind. A span that is not recorded costs nothing.

use http::{HeaderMap, Method, StatusCode};
use opentelemetry::Context;
use tracing::{Level, Span, field};
use wasmspawner_core::lifecycle::{OperationKind, Outcome};
use wasmspawner_core::names::lab::JobId;
use wasmspawner_core::names::spawn_key::SpawnKey;

use super::TARGET;
use super::cause::{current_trace, remote};
use crate::method::method_label;
use crate::trace_id::TraceId;

/// Creates the span of a request to this service. The span belongs to the trace of the caller, if there is one.
pub fn request(method: &Method, route: &str, headers: &HeaderMap) -> Span {
    if !tracing::span_enabled!(target: TARGET, Level::INFO) {
        return Span::none();
    }
    let _caller = remote(headers).attach();
    let method = method_label(method);
    tracing::info_span!(
        target: TARGET, "request",
        otel.name = format!("{method} {route}"),
        otel.kind = "server",
        otel.status_code = field::Empty,
        http.request.method = method,
        http.route = route,
        http.response.status_code = field::Empty,
    )
}

/// Creates the span of a request to the Kubernetes API, as a part of the current span. `path` names the object, without
/// the query.
pub fn kubernetes_request(verb: &'static str, method: &Method, path: &str) -> Span {
    let (namespace, resource) = resource(path);
    tracing::info_span!(
        target: TARGET, "kubernetes",
        otel.name = format!("{verb} {resource}"),
        otel.kind = "client",
        otel.status_code = field::Empty,
        http.request.method = method.as_str(),
        http.response.status_code = field::Empty,
        url.path = path,
        k8s.namespace.name = namespace,
    )
}

/// Creates the span of a request to `JupyterHub`. `route` is the pattern of its path.
pub fn hub_request(route: &'static str) -> Span {
    tracing::info_span!(
        target: TARGET, "jupyterhub",
        otel.name = format!("GET {route}"),
        otel.kind = "client",
        otel.status_code = field::Empty,
        http.request.method = "GET",
        http.response.status_code = field::Empty,
        url.template = route,
        peer.service = "jupyterhub",
    )
}

/// Adds the answer to the span of a request. No status means that there was no answer. Only a missing answer and a
/// server error count as errors: a client that checks whether an object exists gets a 404 in normal operation.
pub fn answered(span: &Span, status: Option<StatusCode>) {
    if let Some(status) = status {
        span.record("http.response.status_code", status.as_u16());
    }
    if status.is_none_or(|status| status.is_server_error()) {
        span.record("otel.status_code", "ERROR");
    }
}

/// Creates the span of a call of a policy's hook.
pub fn policy_call(policy: &str, hook: &'static str) -> Span {
    tracing::info_span!(
        target: TARGET, "policy",
        otel.name = format!("policy {hook}"),
        otel.status_code = field::Empty,
        wasmspawner.policy.name = policy,
        wasmspawner.policy.hook = hook,
        wasmspawner.policy.outcome = field::Empty,
    )
}

/// Adds the outcome of the call: `ok` or the kind of the error.
pub fn policy_answered(span: &Span, outcome: &'static str) {
    span.record("wasmspawner.policy.outcome", outcome);
    if outcome != "ok" {
        span.record("otel.status_code", "ERROR");
    }
}

/// Creates the span of an operation of a lab, from its acceptance to its end.
pub fn operation(kind: OperationKind, key: &SpawnKey, job_id: JobId) -> Span {
    let kind = match kind {
        OperationKind::Spawn => "spawn",
        OperationKind::Stop => "stop",
        OperationKind::Cleanup => "cleanup",
    };
    tracing::info_span!(
        target: TARGET, "operation",
        otel.name = kind,
        otel.status_code = field::Empty,
        user.name = key.lab.user.as_str(),
        wasmspawner.server = key.lab.server.as_str(),
        wasmspawner.job_id = %job_id,
        wasmspawner.outcome = field::Empty,
        error.type = field::Empty,
    )
}

/// Adds the outcome of an operation. The reason of a failure is a fixed word. Its message is not added, because it is
/// for the user alone.
pub fn operation_ended(span: &Span, outcome: &Outcome) {
    let name = match outcome {
        Outcome::Complete => "complete",
        Outcome::Cancelled => "cancelled",
        Outcome::Failed(failure) => {
            span.record("error.type", failure.reason.as_str());
            span.record("otel.status_code", "ERROR");
            "failed"
        }
    };
    span.record("wasmspawner.outcome", name);
}

/// Returns the trace of a span, if the trace is recorded.
pub fn trace_of(span: &Span) -> Option<TraceId> {
    // If the span is not recorded, `current_trace` would otherwise return the trace around it.
    let _none = Context::new().attach();
    span.in_scope(current_trace)
}

/// Returns the namespace and the kind of resource in a path of the Kubernetes API.
fn resource(path: &str) -> (Option<&str>, &str) {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    // /api/VERSION/... or /apis/GROUP/VERSION/...
    let prefix = if parts.next() == Some("apis") { 2 } else { 1 };
    let rest: Vec<&str> = parts.skip(prefix).collect();
    match rest[..] {
        ["namespaces", namespace, resource, ..] => (Some(namespace), resource),
        [resource, ..] => (None, resource),
        [] => (None, "api"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_a_resource_and_its_namespace() {
        for (path, expected) in [
            ("/api/v1/namespaces/nb-ada/pods/nb-ada", (Some("nb-ada"), "pods")),
            ("/api/v1/namespaces", (None, "namespaces")),
            ("/api/v1/namespaces/nb-ada", (None, "namespaces")),
            ("/apis/wasmspawner.io/v1/namespaces/w/spawns/lab-ada/status", (Some("w"), "spawns")),
            ("/api/v1/pods", (None, "pods")),
            ("/version", (None, "api")),
        ] {
            assert_eq!(resource(path), expected, "{path}");
        }
    }
}
