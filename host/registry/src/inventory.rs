//! The service's knowledge about images, which changes while the service runs.

use std::sync::Arc;

use tokio::sync::watch;
use wasmspawner_core::images::{Inventory, NodeImages};

/// The service's knowledge about images. Clones share it. Reading never waits.
#[derive(Clone, Debug, Default)]
pub struct LiveInventory {
    registries: watch::Sender<Arc<Inventory>>,
    /// `None` until the nodes have been listed.
    nodes: watch::Sender<Option<Arc<NodeImages>>>,
}

impl LiveInventory {
    /// Creates an inventory with fixed content.
    pub fn from_parts(registries: Inventory, nodes: NodeImages) -> Self {
        Self {
            registries: watch::Sender::new(Arc::new(registries)),
            nodes: watch::Sender::new(Some(Arc::new(nodes))),
        }
    }

    /// Returns the images in registries.
    pub fn registries(&self) -> Arc<Inventory> {
        self.registries.borrow().clone()
    }

    /// Returns the images on nodes; empty until the nodes have been listed.
    pub fn nodes(&self) -> Arc<NodeImages> {
        self.listed_nodes().unwrap_or_default()
    }

    /// Returns the images on nodes, or `None` until the nodes have been listed.
    pub fn listed_nodes(&self) -> Option<Arc<NodeImages>> {
        self.nodes.borrow().clone()
    }

    /// Subscribes to changes from now on.
    pub fn changes(&self) -> InventoryChanges {
        InventoryChanges { registries: self.registries.subscribe(), nodes: self.nodes.subscribe() }
    }

    /// Replaces the images on nodes. Only the task that watches nodes calls this.
    pub fn replace_nodes(&self, nodes: Option<NodeImages>) {
        self.nodes.send_replace(nodes.map(Arc::new));
    }

    /// Replaces the images in registries. Only the task that reads registries calls this.
    pub fn replace_registries(&self, registries: Inventory) {
        self.registries.send_replace(Arc::new(registries));
    }
}

/// A part of the inventory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The images in registries.
    Registries,
    /// The images on nodes.
    Nodes,
}

/// A subscription to changes of the inventory.
pub struct InventoryChanges {
    registries: watch::Receiver<Arc<Inventory>>,
    nodes: watch::Receiver<Option<Arc<NodeImages>>>,
}

impl InventoryChanges {
    /// Waits for a change since the last call.
    pub async fn next(&mut self) -> Change {
        let (changed, change) = tokio::select! {
            changed = self.registries.changed() => (changed, Change::Registries),
            changed = self.nodes.changed() => (changed, Change::Nodes),
        };
        if changed.is_err() {
            // The inventory was dropped, so there are no further changes.
            std::future::pending::<()>().await;
        }
        change
    }
}
