//! Follows the images that nodes have, with one watch.

use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::config::Config;
use wasmspawner_core::images::{LabNode, NodeImages, NodeRules};

use wasmspawner_kubernetes::watches::{Readable, changes, short_watch};
use wasmspawner_registry::inventory::LiveInventory;
use wasmspawner_spawner::config_part::ConfigPart;

/// Follows the nodes that the configuration selects, until `stop`. Without `images.nodes`, no node is followed.
pub async fn follow_nodes(
    client: Client,
    config: watch::Receiver<Arc<Config>>,
    inventory: LiveInventory,
    stop: CancellationToken,
) {
    let mut configured = ConfigPart::new(config, |config| config.images.node_rules());
    while !stop.is_cancelled() {
        let rules = configured.current();
        let following = async {
            match &rules {
                Some(rules) => follow(&client, rules, &inventory).await,
                None => inventory.replace_nodes(None),
            }
        };
        configured.while_it_is(&rules, &stop, following).await;
    }
}

/// Follows the nodes, and never ends by itself. While the API server is away, the known images stay.
async fn follow(client: &Client, rules: &NodeRules, inventory: &LiveInventory) {
    let nodes = Api::<Readable<Node>>::all(client.clone());
    let mut nodes = std::pin::pin!(changes(nodes, short_watch()));
    let mut listed = NodeImages::default();
    while let Some(change) = nodes.next().await {
        match change {
            Ok(watcher::Event::Init) => listed = NodeImages::default(),
            Ok(watcher::Event::InitApply(node)) => {
                listed.insert(node.name_any(), LabNode::observed(&node, rules));
            }
            Ok(watcher::Event::InitDone) => inventory.replace_nodes(Some(std::mem::take(&mut listed))),
            Ok(watcher::Event::Apply(node)) => {
                let (name, node) = (node.name_any(), LabNode::observed(&node, rules));
                // A node reports that it is alive much more often than it reports other images.
                if inventory.nodes().node(&name) != Some(&node) {
                    let mut nodes = NodeImages::clone(&inventory.nodes());
                    nodes.insert(name, node);
                    inventory.replace_nodes(Some(nodes));
                }
            }
            Ok(watcher::Event::Delete(node)) => {
                let mut nodes = NodeImages::clone(&inventory.nodes());
                nodes.remove(&node.name_any());
                inventory.replace_nodes(Some(nodes));
            }
            Err(error) => {
                tracing::warn!(%error, "the nodes cannot be watched, and it is tried again; `images.nodes` needs the permissions of deploy/permissions/nodes.yaml");
            }
        }
    }
}
