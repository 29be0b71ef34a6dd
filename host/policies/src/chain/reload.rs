//! Replaces the chain of policies in use.

use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::MutexGuard;
use tokio_util::sync::CancellationToken;

use wasmspawner_core::config::DataSource;

use super::Policies;
use super::link::Link;
use super::loaded::Loaded;
use super::loader::load_chain;
use crate::errors::LoadError;
use crate::policy::Policy;
use crate::source::spec::PolicySpec;
use crate::source::watched_files::WatchedFiles;

/// The interval between checks for documents that are due to be read again.
const DUE: Duration = Duration::from_secs(1);

impl Policies {
    /// Loads the files of the current chain again, and replaces the chain in one step.
    ///
    /// # Errors
    ///
    /// The old chain stays, and its policy keeps the error as its last one.
    pub async fn reload(&self) -> Result<(), LoadError> {
        let files = self.files.lock().await;
        // Read under the lock: the previous holder may have removed a grant.
        let specs = self.live.load().specs();
        self.load_instead(specs, files).await
    }

    /// Loads another chain, and replaces the current one in one step. Calls in progress finish on the old one.
    ///
    /// # Errors
    ///
    /// The old chain stays, and its policy of the same name keeps the error as its last one.
    pub async fn replace(&self, specs: Vec<PolicySpec>) -> Result<(), LoadError> {
        let files = self.files.lock().await;
        self.load_instead(specs, files).await
    }

    async fn load_instead(
        &self,
        specs: Vec<PolicySpec>,
        mut files: MutexGuard<'_, WatchedFiles>,
    ) -> Result<(), LoadError> {
        // The state of the files is taken before they are read, so that no later change is missed. It is stored only
        // after the load, so that a load that is cancelled is repeated.
        let seen = WatchedFiles::from_policies(&specs);
        let (engine, before) = (Arc::clone(&self.engine), self.live.load_full());
        // Spawns go on during the load.
        let load = async move { load_chain(&engine, specs, before.to_replace()).await };
        let loaded = self.engine.background.load(load).await;
        *files = seen;
        match loaded {
            Ok(chain) => {
                self.live.store(Arc::new(Loaded::Chain(chain)));
                self.forget_documents().await;
                Ok(())
            }
            Err(error) => {
                let live = self.live.load_full();
                if let Some(kept) = live.chain().iter().find(|policy| *policy.name() == error.policy) {
                    kept.note_error(format!("not reloaded: {}", error.kind));
                }
                if let Loaded::Failed { specs, .. } = &*live {
                    self.live.store(Arc::new(Loaded::failed(specs.clone(), &error)));
                }
                Err(error)
            }
        }
    }

    /// Deletes the contents of documents that no policy reads any more. Those of a candidate or an earlier version that
    /// cannot be loaded now stay, because the next attempt needs them.
    pub(super) async fn forget_documents(&self) {
        let live = self.live.load_full();
        if matches!(*live, Loaded::Failed { .. }) {
            return;
        }
        let mut documents = Vec::new();
        for link in live.chain() {
            let recorded = self.engine.versions.as_ref().and_then(|versions| versions.record(link.name()));
            let recorded = recorded.and_then(|recorded| recorded.last_good);
            let data = iter::once(&link.policy.spec.data)
                .chain([&link.configured().data])
                .chain(link.policy.spec.candidate.iter().map(|candidate| &candidate.data))
                .chain(link.last_good.iter().map(|last_good| &last_good.policy.spec.data))
                .chain(recorded.iter().map(|version| &version.data));
            documents.extend(data.flat_map(BTreeMap::values).filter_map(DataSource::document).cloned());
        }
        self.engine.documents.keep_only(documents).await;
    }

    /// Checks the files from which the policies were loaded, or could not be loaded. Returns true if they have changed
    /// since the load, and not since the previous check: files that are still being written are not read. Each change
    /// is reported once.
    pub async fn files_have_changed(&self) -> bool {
        let mut files = Arc::clone(&self.files).lock_owned().await;
        tokio::task::spawn_blocking(move || files.look()).await.unwrap_or_default()
    }

    /// Keeps the documents with site data up to date, until `shutdown`.
    pub async fn follow_data(&self, shutdown: CancellationToken) {
        let mut again = tokio::time::interval(DUE);
        while shutdown.run_until_cancelled(again.tick()).await.is_some() {
            let live = self.live.load_full();
            let refreshed =
                join_all(all_policies(live.chain()).map(|policy| policy.refresh_data(&self.engine)));
            shutdown.run_until_cancelled(refreshed).await;
            if !Arc::ptr_eq(&live, &self.live.load_full()) {
                // What was read for the old chain may have been kept after the new one was loaded.
                self.forget_documents().await;
            }
        }
    }
}

/// Returns the policies of a chain, with their candidates and last good versions.
fn all_policies(chain: &[Arc<Link>]) -> impl Iterator<Item = &Policy> {
    let candidates = chain.iter().filter_map(|link| link.candidate.as_ref()?.policy());
    let last_good = chain.iter().filter_map(|link| Some(&link.last_good.as_ref()?.policy));
    chain.iter().map(|link| &link.policy).chain(candidates).chain(last_good)
}
