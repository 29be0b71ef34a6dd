//! The address of the process that leads, in the EndpointSlice of the service's Service. Nobody sends requests to a
//! process that stands by.

use std::net::IpAddr;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointSlice};
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::watcher;
use serde_json::json;

use crate::k8s::Connection;
use crate::watches::{Readable, changes, short_watch};

/// The time for which a process that has led answers that another leads, so that requests that are on their way to it
/// are not lost.
const MOVES_WITHIN: Duration = Duration::from_secs(5);

/// The pause between two looks for the address of the next leader.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The pause after a failure. It doubles with each further one, up to `MAX_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// The time limit of one request.
const REQUEST: Duration = Duration::from_secs(3);

/// The pod of this process, and where it is reached.
#[derive(Debug, Clone)]
pub struct PodAddress {
    /// The name of the pod.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its node, which Services with `externalTrafficPolicy: Local` need.
    pub node: Option<String>,
    /// Its addresses, one for each family of the cluster.
    pub addresses: Vec<IpAddr>,
}

/// The EndpointSlice in which the process that leads writes its address. The Service has no selector, so nobody else writes
/// it.
pub struct PublishedAddress {
    name: String,
    pod: PodAddress,
    namespace: String,
    /// Sends changes only while this process leads.
    guarded: Api<EndpointSlice>,
    watched: Api<Readable<EndpointSlice>>,
    unguarded: Api<EndpointSlice>,
}

/// The reason why the address cannot be written.
#[derive(Debug, thiserror::Error)]
enum AddressError {
    #[error("the Kubernetes API did not answer within {} s", REQUEST.as_secs())]
    TooLate,
    #[error(transparent)]
    Client(#[from] kube::Error),
    #[error("somebody else has changed it")]
    Changed,
    #[error("the EndpointSlice is for addresses of the type {wanted}, and this pod has only {has:?}")]
    NoAddress { wanted: String, has: Vec<IpAddr> },
}

impl PublishedAddress {
    /// The address of `pod` in the EndpointSlice `name`. `unguarded` is a client that sends changes although this process
    /// does not lead.
    pub fn new(
        connection: &Connection,
        unguarded: Client,
        namespace: &str,
        name: &str,
        pod: PodAddress,
    ) -> Self {
        Self {
            name: name.to_owned(),
            pod,
            namespace: namespace.to_owned(),
            guarded: Api::namespaced(connection.requests.clone(), namespace),
            watched: Api::namespaced(connection.watches.clone(), namespace),
            unguarded: Api::namespaced(unguarded, namespace),
        }
    }

    /// Writes the address, and again whenever the EndpointSlice shows another: a `helm upgrade` or a person may have
    /// changed it. Never ends by itself.
    pub async fn keep(&self) {
        let only = short_watch().fields(&format!("metadata.name={}", self.name));
        let mut seen = std::pin::pin!(changes(self.watched.clone(), only));
        let mut is_there = false;
        while let Some(change) = seen.next().await {
            match change {
                Ok(watcher::Event::Init) => is_there = false,
                Ok(watcher::Event::InitApply(slice) | watcher::Event::Apply(slice)) => {
                    is_there = true;
                    self.write_in_the_end(&slice).await;
                }
                Ok(watcher::Event::InitDone) if is_there => {}
                Ok(watcher::Event::InitDone | watcher::Event::Delete(_)) => {
                    tracing::error!(
                        endpoint_slice = self.name,
                        "`kubernetes.endpoint_slice` names an EndpointSlice that does not exist, so no requests come in; the chart makes it"
                    );
                }
                Err(error) => {
                    tracing::warn!(endpoint_slice = self.name, %error, "the EndpointSlice of the service cannot be watched; does its account have the permission in deploy/permissions?");
                }
            }
        }
    }

    /// Writes the address, if need be in several attempts. Ends early if somebody else has written meanwhile, which the
    /// watch shows.
    async fn write_in_the_end(&self, slice: &EndpointSlice) {
        let mut pause = FIRST_PAUSE;
        loop {
            let written = match self.endpoint(slice) {
                Ok(endpoint) => self.replace(&self.guarded, slice, &[endpoint]).await,
                Err(error) => Err(error),
            };
            match written {
                Ok(()) | Err(AddressError::Changed) => return,
                Err(error) => {
                    tracing::error!(endpoint_slice = self.name, %error, ?pause, "the address of this process cannot be published, so no requests come in; it is tried again");
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    /// Waits until another process has written its address, while this one still answers that it does not lead any more. If
    /// there is none, the address of this process is removed.
    pub async fn withdraw(&self) {
        let moved = async {
            while self.own_slice().await.is_some() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        if tokio::time::timeout(MOVES_WITHIN, moved).await.is_ok() {
            return;
        }
        let Some(slice) = self.own_slice().await else { return };
        match self.replace(&self.unguarded, &slice, &[]).await {
            Ok(()) | Err(AddressError::Changed) => {}
            Err(error) => {
                tracing::warn!(endpoint_slice = self.name, %error, "the address of this process cannot be removed");
            }
        }
    }

    /// Returns the EndpointSlice if it has the address of this pod.
    async fn own_slice(&self) -> Option<EndpointSlice> {
        let found = in_time(self.unguarded.get_opt(&self.name)).await.ok()??;
        let is_own = |endpoint: &Endpoint| {
            let target = endpoint.target_ref.as_ref().and_then(|target| target.uid.as_deref());
            target == Some(self.pod.uid.as_str())
        };
        found.endpoints.iter().flatten().any(is_own).then_some(found)
    }

    /// Replaces the endpoints, if nobody has changed the EndpointSlice since it was read.
    async fn replace(
        &self,
        slices: &Api<EndpointSlice>,
        slice: &EndpointSlice,
        endpoints: &[Endpoint],
    ) -> Result<(), AddressError> {
        if slice.endpoints.as_deref().unwrap_or_default() == endpoints {
            return Ok(());
        }
        let version = &slice.metadata.resource_version;
        let patch =
            Patch::Merge(json!({ "metadata": { "resourceVersion": version }, "endpoints": endpoints }));
        match in_time(slices.patch(&self.name, &PatchParams::default(), &patch)).await {
            Err(AddressError::Client(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => {
                Err(AddressError::Changed)
            }
            written => {
                written?;
                tracing::info!(endpoint_slice = self.name, addresses = ?endpoints.iter().flat_map(|endpoint| &endpoint.addresses).collect::<Vec<_>>(), "the Service leads to these addresses");
                Ok(())
            }
        }
    }

    fn endpoint(&self, slice: &EndpointSlice) -> Result<Endpoint, AddressError> {
        let is_of_type = |address: &&IpAddr| match slice.address_type.as_str() {
            "IPv4" => address.is_ipv4(),
            "IPv6" => address.is_ipv6(),
            _ => false,
        };
        let address = self.pod.addresses.iter().find(is_of_type).ok_or_else(|| AddressError::NoAddress {
            wanted: slice.address_type.clone(),
            has: self.pod.addresses.clone(),
        })?;
        Ok(Endpoint {
            addresses: vec![address.to_string()],
            conditions: Some(EndpointConditions {
                ready: Some(true),
                serving: Some(true),
                terminating: Some(false),
            }),
            node_name: self.pod.node.clone(),
            target_ref: Some(ObjectReference {
                kind: Some("Pod".to_owned()),
                name: Some(self.pod.name.clone()),
                namespace: Some(self.namespace.clone()),
                uid: Some(self.pod.uid.clone()),
                ..ObjectReference::default()
            }),
            ..Endpoint::default()
        })
    }
}

async fn in_time<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, AddressError> {
    Ok(tokio::time::timeout(REQUEST, request).await.map_err(|_| AddressError::TooLate)??)
}
