//! What the service knows about images, which changes while it runs.

use std::sync::Arc;

use tokio::sync::watch;
use wasmspawner_core::images::{Inventory, NodeImages};

/// What the service knows about images. Clones share it; reading never waits.
#[derive(Clone, Debug, Default)]
pub struct LiveInventory {
    registries: watch::Sender<Arc<Inventory>>,
    /// Absent until the nodes were listed.
    nodes: watch::Sender<Option<Arc<NodeImages>>>,
}

impl LiveInventory {
    /// An inventory that does not change.
    pub fn of(registries: Inventory, nodes: NodeImages) -> Self {
        Self {
            registries: watch::Sender::new(Arc::new(registries)),
            nodes: watch::Sender::new(Some(Arc::new(nodes))),
        }
    }

    /// What registries have.
    pub fn registries(&self) -> Arc<Inventory> {
        self.registries.borrow().clone()
    }

    /// What nodes have; nothing until they were listed.
    pub fn nodes(&self) -> Arc<NodeImages> {
        self.listed_nodes().unwrap_or_default()
    }

    /// What nodes have; `None` until they were listed.
    pub fn listed_nodes(&self) -> Option<Arc<NodeImages>> {
        self.nodes.borrow().clone()
    }

    /// Says what changes from now on.
    pub fn changes(&self) -> InventoryChanges {
        InventoryChanges { registries: self.registries.subscribe(), nodes: self.nodes.subscribe() }
    }

    /// Replaces what is known about nodes. Only the task that watches them does so.
    pub fn replace_nodes(&self, nodes: Option<NodeImages>) {
        self.nodes.send_replace(nodes.map(Arc::new));
    }

    /// Replaces what is known about registries. Only the task that asks them does so.
    pub fn replace_registries(&self, registries: Inventory) {
        self.registries.send_replace(Arc::new(registries));
    }
}

/// A part of what the service knows about images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// What registries have.
    Registries,
    /// What nodes have.
    Nodes,
}

/// Says what has changed.
pub struct InventoryChanges {
    registries: watch::Receiver<Arc<Inventory>>,
    nodes: watch::Receiver<Option<Arc<NodeImages>>>,
}

impl InventoryChanges {
    /// Waits until something has changed since the last call.
    pub async fn next(&mut self) -> Change {
        let (changed, change) = tokio::select! {
            changed = self.registries.changed() => (changed, Change::Registries),
            changed = self.nodes.changed() => (changed, Change::Nodes),
        };
        if changed.is_err() {
            // Nobody knows more than now.
            std::future::pending::<()>().await;
        }
        change
    }
}
