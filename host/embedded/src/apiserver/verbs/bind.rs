//! `POST .../pods/{name}/binding`: the request with which schedulers assign pods to nodes.

use super::update::{Part, update};
use crate::apiserver::call::Call;
use crate::apiserver::failure::{Failure, required};
use crate::apiserver::input;
use crate::apiserver::metadata::{self, Document};
use crate::apiserver::present::{self, Body};
use http::{Response, StatusCode};
use serde_json::{Value, json};

/// Assigns a pod to a node, once.
pub(crate) async fn bind(call: &Call, name: &str) -> Result<Response<Body>, Failure> {
    let binding = input::parse_object(&call.body)?;
    let node = binding.get("target").and_then(|t| t.get("name")).and_then(Value::as_str).unwrap_or_default();
    if node.is_empty() {
        return Err(call.resource.invalid(name, vec![required("target.name")]));
    }
    let bound = update(call, name, Part::Binding, |pod| bound_to(call, name, pod, node)).await?;
    let _ = update(call, name, Part::Status, |pod| Ok(scheduled(pod))).await?;
    Ok(present::json(StatusCode::CREATED, &present::success(&call.resource, name, bound.document())))
}

fn bound_to(call: &Call, name: &str, pod: &Document, node: &str) -> Result<Document, Failure> {
    if metadata::is_deleting(pod) {
        let why = format!("pod {name} is being deleted, cannot be assigned to a host");
        return Err(call.resource.conflict(name, &why));
    }
    let mut pod = pod.clone();
    let spec = metadata::member(&mut pod, "spec");
    if let Some(taken) = spec.get("nodeName").and_then(Value::as_str).filter(|taken| !taken.is_empty()) {
        let why = format!("pod {name} is already assigned to node {taken:?}");
        return Err(call.resource.conflict(name, &why));
    }
    spec.insert("nodeName".to_owned(), json!(node));
    Ok(pod)
}

fn scheduled(pod: &Document) -> Document {
    let mut pod = pod.clone();
    let status = metadata::member(&mut pod, "status");
    let condition = json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": metadata::now()});
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if let Value::Array(conditions) = conditions {
        conditions.retain(|c| c.get("type").and_then(Value::as_str) != Some("PodScheduled"));
        conditions.push(condition);
    }
    pod
}
