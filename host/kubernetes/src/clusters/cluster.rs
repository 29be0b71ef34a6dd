//! One cluster with labs.

use std::time::Duration;

use wasmspawner_core::config::NamespaceReclaim;

use crate::k8s::{Connection, Creator, Deleter, Health, Permissions, TargetObjects};
use crate::observed::ObservedObjects;

/// One cluster with labs: its observed objects, and the means to change them. Clones share everything.
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
    /// The permissions of the service in namespaces.
    pub permissions: Permissions,
    /// The objects of labs, as the watches show them.
    pub store: ObservedObjects,
}

impl Cluster {
    /// Creates the service's own cluster. `namespaces` applies to labs that have no claim.
    pub fn own(connection: &Connection, namespaces: NamespaceReclaim, request_timeout: Duration) -> Self {
        Self::new(connection, namespaces, ObservedObjects::default(), request_timeout)
    }

    /// Creates another cluster. A namespace there belongs to a target and is never made for a lab.
    pub(super) fn other(&self, connection: &Connection, request_timeout: Duration) -> Self {
        Self::new(connection, NamespaceReclaim::Retain, self.store.beside(), request_timeout)
    }

    fn new(
        connection: &Connection,
        namespaces: NamespaceReclaim,
        store: ObservedObjects,
        request_timeout: Duration,
    ) -> Self {
        let client = &connection.requests;
        Self {
            creator: Creator::new(client.clone(), request_timeout),
            deleter: Deleter::new(client.clone(), namespaces, request_timeout),
            targets: TargetObjects::new(connection, request_timeout),
            permissions: Permissions::new(client.clone(), request_timeout),
            store,
            connection: connection.clone(),
        }
    }

    /// The health of the API server.
    pub fn health(&self) -> &Health {
        &self.connection.health
    }
}
