//! Watches records for changes by others, such as `kubectl delete spawn`.

use futures::StreamExt;
use kube::runtime::watcher;
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;
use wasmspawner_core::record::INSTANCE_LABEL;

use super::{SpawnRecords, StoredSpawn, UnreadableRecord, resource};
use crate::watches::{Readable, changes, short_watch};

/// A change of a record.
#[derive(Debug)]
pub enum RecordChange {
    /// The record exists in this state.
    Written(Box<StoredSpawn>),
    /// The record exists, and this version of the service cannot read it.
    Unreadable(UnreadableRecord),
    /// The record is gone.
    Deleted {
        /// Its uid.
        uid: String,
    },
}

impl SpawnRecords {
    /// Calls `on_change` with every change of every record until `stop`, including those that the service itself made.
    pub async fn watch(
        &self,
        client: Client,
        namespace: &str,
        stop: &CancellationToken,
        mut on_change: impl FnMut(RecordChange),
    ) {
        let api: Api<Readable<kube::api::DynamicObject>> =
            Api::namespaced_with(client, namespace, &resource());
        let config = short_watch().labels(&format!("{INSTANCE_LABEL}={}", self.instance));
        let mut stream = std::pin::pin!(changes(api, config));
        while let Some(change) = stop.run_until_cancelled(stream.next()).await.flatten() {
            match change {
                Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => {
                    on_change(match StoredSpawn::read(object) {
                        Ok(stored) => RecordChange::Written(Box::new(stored)),
                        Err(unreadable) => RecordChange::Unreadable(unreadable),
                    });
                }
                Ok(watcher::Event::Delete(object)) => {
                    on_change(RecordChange::Deleted { uid: object.metadata.uid.unwrap_or_default() });
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "the watch of records failed and is begun again"),
            }
        }
    }
}
