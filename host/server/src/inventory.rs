//! What the service knows about images, which changes while it runs.

use std::sync::Arc;

use arc_swap::ArcSwap;
use wasmspawner_core::images::{Inventory, NodeImages};

/// What the service knows about images. Clones share it; reading never waits.
#[derive(Clone, Debug, Default)]
pub struct LiveInventory {
    registries: Arc<ArcSwap<Inventory>>,
    nodes: Arc<ArcSwap<NodeImages>>,
}

impl LiveInventory {
    /// An inventory that does not change.
    pub fn of(registries: Inventory, nodes: NodeImages) -> Self {
        let (registries, nodes) = (ArcSwap::from_pointee(registries), ArcSwap::from_pointee(nodes));
        Self { registries: Arc::new(registries), nodes: Arc::new(nodes) }
    }

    /// What registries have.
    pub fn registries(&self) -> Arc<Inventory> {
        self.registries.load_full()
    }

    /// What nodes have.
    pub fn nodes(&self) -> Arc<NodeImages> {
        self.nodes.load_full()
    }

    /// Replaces what is known about nodes. Only the task that watches them does so.
    pub(crate) fn replace_nodes(&self, nodes: NodeImages) {
        self.nodes.store(Arc::new(nodes));
    }

    /// Replaces what is known about registries. Only the task that asks them does so.
    pub(crate) fn replace_registries(&self, registries: Inventory) {
        self.registries.store(Arc::new(registries));
    }
}
