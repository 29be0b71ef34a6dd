//! A tiny provisioner: every claim is bound at once, to a directory that the process runtime makes of it.
//!
//! No `PersistentVolume` objects are made: nothing here reads them.

use std::{collections::HashSet, sync::Arc};

use futures::StreamExt;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimStatus};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::failure::is_gone;

/// Namespace and name.
type Key = (String, String);

/// The claims that pods may use.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    bound: watch::Sender<HashSet<Key>>,
}

impl Claims {
    /// Sees every change of what is bound.
    pub(crate) fn subscribe(&self) -> watch::Receiver<HashSet<Key>> {
        self.bound.subscribe()
    }

    /// Why a pod cannot have the claim, in the scheduler's words. Waits for a claim that is being bound.
    pub(crate) async fn missing(&self, client: &Client, namespace: &str, name: &str) -> Option<String> {
        let key = (namespace.to_owned(), name.to_owned());
        if self.bound.borrow().contains(&key) {
            return None;
        }
        let api: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), namespace);
        if let Ok(None) = api.get_opt(name).await {
            return Some(format!("persistentvolumeclaim {name:?} not found"));
        }
        let _ = self.subscribe().wait_for(|bound| bound.contains(&key)).await;
        None
    }
}

/// Binds claims until the shutdown.
pub(crate) async fn provision(client: Client, claims: Arc<Claims>, shutdown: CancellationToken) {
    let api: Api<PersistentVolumeClaim> = Api::all(client.clone());
    let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = shutdown.cancelled() => return,
        };
        match event {
            Some(Ok(watcher::Event::Apply(claim) | watcher::Event::InitApply(claim))) => {
                observe(&client, &claims, &claim).await;
            }
            Some(Ok(watcher::Event::Delete(claim))) => {
                claims.bound.send_if_modified(|bound| bound.remove(&key(&claim)));
            }
            Some(Ok(watcher::Event::Init | watcher::Event::InitDone)) => {}
            Some(Err(error)) => tracing::warn!(%error, "the watch of claims failed, it goes on"),
            None => return,
        }
    }
}

async fn observe(client: &Client, claims: &Claims, claim: &PersistentVolumeClaim) {
    if claim.metadata.deletion_timestamp.is_some() {
        return;
    }
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    if phase != Some("Bound")
        && let Err(error) = bind(client, claim).await
    {
        if !is_gone(&error) {
            tracing::warn!(claim = claim.metadata.name, %error, "a claim was not bound");
        }
        return;
    }
    claims.bound.send_if_modified(|bound| bound.insert(key(claim)));
}

async fn bind(client: &Client, claim: &PersistentVolumeClaim) -> Result<(), kube::Error> {
    let (namespace, name) = key(claim);
    let api: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), &namespace);
    let params = PatchParams::default();
    if claim.spec.as_ref().is_some_and(|spec| spec.volume_name.is_none()) {
        let volume = format!("pvc-{}", claim.metadata.uid.as_deref().unwrap_or_default());
        api.patch(&name, &params, &Patch::Merge(json!({"spec": {"volumeName": volume}}))).await?;
    }
    let spec = claim.spec.as_ref();
    let status = PersistentVolumeClaimStatus {
        phase: Some("Bound".to_owned()),
        access_modes: spec.and_then(|spec| spec.access_modes.clone()),
        capacity: spec.and_then(|spec| spec.resources.as_ref()?.requests.clone()),
        ..PersistentVolumeClaimStatus::default()
    };
    api.patch_status(&name, &params, &Patch::Merge(json!({"status": status}))).await.map(drop)
}

fn key(claim: &PersistentVolumeClaim) -> Key {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    (text(&claim.metadata.namespace), text(&claim.metadata.name))
}
