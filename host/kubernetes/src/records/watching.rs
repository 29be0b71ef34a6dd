//! Watches records for changes by others, such as `kubectl delete spawn`.

use futures::StreamExt;
use kube::runtime::watcher;
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;
use wasmspawner_core::record::INSTANCE_LABEL;

use super::{SpawnRecords, StoredSpawn, resource};
use crate::watches::{Readable, changes, short_watch};

impl SpawnRecords {
    /// Calls `on_change` with every state of every record until `stop`, including those that the service itself wrote.
    pub async fn watch(
        &self,
        client: Client,
        namespace: &str,
        stop: &CancellationToken,
        mut on_change: impl FnMut(StoredSpawn),
    ) {
        let api: Api<Readable<kube::api::DynamicObject>> =
            Api::namespaced_with(client, namespace, &resource());
        let config = short_watch().labels(&format!("{INSTANCE_LABEL}={}", self.instance));
        let mut stream = std::pin::pin!(changes(api, config));
        while let Some(change) = stop.run_until_cancelled(stream.next()).await.flatten() {
            match change {
                Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => {
                    if let Some(stored) = StoredSpawn::read(object) {
                        on_change(stored);
                    }
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "the watch of records failed and is begun again"),
            }
        }
    }
}
