//! One cluster with labs.

use std::time::Duration;

use wasmspawner_core::config::NamespaceReclaim;

use crate::k8s::{Connection, Creator, Deleter, Health, TargetObjects};
use crate::store::Store;

/// One cluster with labs: what is known of it, and how its objects are changed. Clones share everything.
#[derive(Clone)]
pub struct Cluster {
    /// The clients.
    pub connection: Connection,
    /// Creates the objects of labs.
    pub creator: Creator,
    /// Deletes the objects of labs.
    pub deleter: Deleter,
    /// Makes and removes the namespaces of targets.
    pub targets: TargetObjects,
    /// The objects of labs, as the watches show them.
    pub store: Store,
}

impl Cluster {
    /// The service's own cluster, where labs have such `namespaces` unless they have a claim.
    pub fn own(connection: &Connection, namespaces: NamespaceReclaim, request_timeout: Duration) -> Self {
        Self::new(connection, namespaces, Store::default(), request_timeout)
    }

    /// Another cluster. A namespace there is that of a target, and never made for a lab.
    pub(super) fn other(&self, connection: &Connection, request_timeout: Duration) -> Self {
        Self::new(connection, NamespaceReclaim::Retain, self.store.beside(), request_timeout)
    }

    fn new(
        connection: &Connection,
        namespaces: NamespaceReclaim,
        store: Store,
        request_timeout: Duration,
    ) -> Self {
        let client = &connection.requests;
        Self {
            creator: Creator::new(client.clone(), request_timeout),
            deleter: Deleter::new(client.clone(), namespaces, request_timeout),
            targets: TargetObjects::new(connection, request_timeout),
            store,
            connection: connection.clone(),
        }
    }

    /// Whether the API server answers.
    pub fn health(&self) -> &Health {
        &self.connection.health
    }
}
