//! The address of the process that leads, in the EndpointSlice of the service's Service. Nobody sends requests to a
//! process that stands by.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointSlice};
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::watcher;
use serde_json::json;
use tokio::sync::watch;

use crate::k8s::Connection;
use crate::short_request::{ShortRequestError, in_time};
use crate::watches::{Readable, changes, short_watch};

/// How long a former leader goes on answering 503 while the Service still leads to it.
const MOVES_WITHIN: Duration = Duration::from_secs(5);

/// How long it goes on after the Service leads elsewhere: nodes learn that a moment later.
const SPREADS_WITHIN: Duration = Duration::from_secs(2);

/// The pause between two looks for the address of the next leader.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The pause after a failure. It doubles with each further one, up to `MAX_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_secs(5);

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
    /// True while the EndpointSlice can be, or is, what it has to be.
    works: watch::Sender<bool>,
    /// The problem that the log tells already.
    logged: Mutex<String>,
}

/// The reason why the address cannot be written.
#[derive(Debug, thiserror::Error)]
enum AddressError {
    #[error(transparent)]
    Request(#[from] ShortRequestError),
    #[error("it does not exist; the chart makes it")]
    Missing,
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
            works: watch::Sender::new(false),
            logged: Mutex::default(),
        }
    }

    /// Follows whether requests can be led to this process: whether it could write its address when that was checked last,
    /// and once it leads, whether it has.
    pub fn works(&self) -> watch::Receiver<bool> {
        self.works.subscribe()
    }

    /// Waits until this process could write its address, if it led.
    pub async fn check(&self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let checked = async {
                let slice = in_time(self.guarded.get_opt(&self.name)).await?.ok_or(AddressError::Missing)?;
                let endpoint = self.endpoint(&slice)?;
                let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
                self.patch(&self.guarded, &slice, &[endpoint], &dry_run).await
            };
            match checked.await {
                Ok(()) | Err(AddressError::Changed) => break,
                Err(error) => self.note_problem(&error),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
        self.note_success();
    }

    /// Writes the address, and again whenever the EndpointSlice shows another: a `helm upgrade` or a person may have
    /// changed it. Never ends by itself.
    pub async fn keep(&self) {
        self.works.send_replace(false);
        let only = short_watch().fields(&format!("metadata.name={}", self.name));
        let mut seen = std::pin::pin!(changes(self.watched.clone(), only));
        let mut is_there = false;
        while let Some(change) = seen.next().await {
            match change {
                Ok(watcher::Event::Init) => is_there = false,
                Ok(watcher::Event::InitApply(slice) | watcher::Event::Apply(slice)) => {
                    is_there = true;
                    self.write_until_done(&slice).await;
                }
                Ok(watcher::Event::InitDone) if is_there => {}
                Ok(watcher::Event::InitDone | watcher::Event::Delete(_)) => {
                    self.note_problem(&AddressError::Missing);
                }
                Err(error) => {
                    tracing::warn!(endpoint_slice = self.name, %error, "the EndpointSlice of the service cannot be watched; does its account have the permission in deploy/permissions?");
                }
            }
        }
    }

    /// Writes the address, if need be in several attempts. Ends early if somebody else has written meanwhile, which the
    /// watch shows, or if this pod has no address of the slice's type.
    async fn write_until_done(&self, slice: &EndpointSlice) {
        let mut pause = FIRST_PAUSE;
        let endpoint = match self.endpoint(slice) {
            Ok(endpoint) => endpoint,
            Err(error) => return self.note_problem(&error),
        };
        loop {
            let endpoints = std::slice::from_ref(&endpoint);
            match self.replace(&self.guarded, slice, endpoints).await {
                Ok(()) => return self.note_success(),
                Err(AddressError::Changed) => return,
                Err(error) => self.note_problem(&error),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    fn note_success(&self) {
        self.logged.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.works.send_replace(true);
    }

    fn note_problem(&self, error: &AddressError) {
        self.works.send_replace(false);
        let problem = error.to_string();
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if *logged == problem {
            return;
        }
        *logged = problem;
        tracing::error!(endpoint_slice = self.name, %error, "`kubernetes.endpoint_slice`: requests cannot be led to this process, so it is not ready; it is tried again");
    }

    /// Waits until the next leader has written its address, while this process still answers 503. Without a next leader
    /// (`has_successor`), or if it does not write, the address of this process is removed.
    pub async fn withdraw(&self, has_successor: bool) {
        let moved = async {
            while !matches!(self.own_slice().await, Ok(None)) {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        if has_successor && tokio::time::timeout(MOVES_WITHIN, moved).await.is_ok() {
            return tokio::time::sleep(SPREADS_WITHIN).await;
        }
        let removed = async {
            let Some(slice) = self.own_slice().await? else { return Ok(()) };
            self.replace(&self.unguarded, &slice, &[]).await
        };
        match removed.await {
            Ok(()) | Err(AddressError::Changed) => {}
            Err(error) => {
                tracing::warn!(endpoint_slice = self.name, %error, "the address of this process cannot be removed");
            }
        }
    }

    /// Returns the EndpointSlice if it has the address of this pod.
    async fn own_slice(&self) -> Result<Option<EndpointSlice>, AddressError> {
        let is_own = |endpoint: &Endpoint| {
            let target = endpoint.target_ref.as_ref().and_then(|target| target.uid.as_deref());
            target == Some(self.pod.uid.as_str())
        };
        let found = in_time(self.unguarded.get_opt(&self.name)).await?;
        Ok(found.filter(|slice| slice.endpoints.iter().flatten().any(is_own)))
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
        self.patch(slices, slice, endpoints, &PatchParams::default()).await?;
        let addresses: Vec<_> = endpoints.iter().flat_map(|endpoint| &endpoint.addresses).collect();
        tracing::info!(endpoint_slice = self.name, ?addresses, "the Service leads to these addresses");
        Ok(())
    }

    async fn patch(
        &self,
        slices: &Api<EndpointSlice>,
        slice: &EndpointSlice,
        endpoints: &[Endpoint],
        params: &PatchParams,
    ) -> Result<(), AddressError> {
        let version = &slice.metadata.resource_version;
        let patch =
            Patch::Merge(json!({ "metadata": { "resourceVersion": version }, "endpoints": endpoints }));
        match in_time(slices.patch(&self.name, params, &patch)).await {
            Err(error) if error.is_overtaken() => Err(AddressError::Changed),
            written => Ok(written.map(drop)?),
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
