//! Keeps the Node object there and alive.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Node as NodeObject;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Node, object};
use crate::kubelet::failure::is_gone;

/// Creates the object when it is missing and reports the status, again and again.
pub(crate) async fn keep_registered(node: Arc<Node>, shutdown: CancellationToken) {
    let api: Api<NodeObject> = Api::all(node.client.clone());
    let since = node.clock.now();
    let mut retry = Node::transient();
    loop {
        let wait = match report(&api, &node, since).await {
            Ok(()) => {
                retry = Node::transient();
                node.heartbeat
            }
            Err(error) => {
                tracing::warn!(node = node.name, %error, "the node could not report its status, trying again");
                retry.advance()
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

async fn report(api: &Api<NodeObject>, node: &Node, since: jiff::Timestamp) -> Result<(), kube::Error> {
    let status = object::status(node, since, node.clock.now());
    let patch = Patch::Strategic(json!({"metadata": {"labels": node.labels}, "status": status}));
    match api.patch_status(&node.name, &PatchParams::default(), &patch).await {
        Ok(_) => return Ok(()),
        Err(error) if is_gone(&error) => {}
        Err(error) => return Err(error),
    }
    api.create(&PostParams::default(), &object::object(node)).await?;
    api.patch_status(&node.name, &PatchParams::default(), &patch).await.map(drop)
}
