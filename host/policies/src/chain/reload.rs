//! Another chain of policies in the place of the one in use.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::MutexGuard;
use tokio_util::sync::CancellationToken;

use super::Policies;
use super::loader::load_chain;
use crate::errors::LoadError;
use crate::source::spec::PolicySpec;
use crate::source::watched_files::WatchedFiles;

/// How often it is looked whether a document is to be read again.
const DUE: Duration = Duration::from_secs(1);

impl Policies {
    /// Loads the files of the present chain again and replaces the chain in one step.
    ///
    /// # Errors
    ///
    /// The old chain stays, and its policy keeps the error as its last one.
    pub async fn reload(&self) -> Result<(), LoadError> {
        let files = self.files.lock().await;
        // Read only now: whoever had the lock may have taken away a grant.
        let specs = self.live.load().iter().map(|policy| policy.spec.clone()).collect();
        self.load_instead(specs, files).await
    }

    /// Loads another chain and replaces the present one in one step. Calls under way finish on the old one.
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
        // They are looked at before they are read, so that no later change is missed, and remembered when they have been read, so
        // that a load which is given up is made up for.
        let seen = WatchedFiles::of(&specs);
        let (engine, before) = (Arc::clone(&self.engine), self.live.load_full());
        // Labs are started meanwhile.
        let load = async move { load_chain(&engine, specs, &before).await };
        let loaded = self.engine.background.load(load).await;
        *files = seen;
        match loaded {
            Ok(chain) => {
                self.live.store(Arc::new(chain));
                Ok(())
            }
            Err(error) => {
                if let Some(kept) = self.live.load().iter().find(|policy| *policy.name() == error.policy) {
                    kept.note_error(format!("not reloaded: {}", error.kind));
                }
                Err(error)
            }
        }
    }

    /// Looks at the files from which the policies were loaded, or could not be loaded. True if they have changed since, and not
    /// since the look before: what is still being written is not read. A change is told once.
    pub async fn files_have_changed(&self) -> bool {
        let mut files = Arc::clone(&self.files).lock_owned().await;
        tokio::task::spawn_blocking(move || files.look()).await.unwrap_or_default()
    }

    /// Keeps the documents with data of the site up to date, until `shutdown`.
    pub async fn follow_data(&self, shutdown: CancellationToken) {
        let mut again = tokio::time::interval(DUE);
        while shutdown.run_until_cancelled(again.tick()).await.is_some() {
            let chain = self.live.load_full();
            let candidates = chain.iter().filter_map(|link| link.candidate.as_ref()?.policy());
            let last_good = chain.iter().filter_map(|link| Some(&link.last_good.as_ref()?.policy));
            let policies = chain.iter().map(|link| &link.policy).chain(candidates).chain(last_good);
            let refreshed = join_all(policies.map(|policy| policy.refresh_data(&self.engine)));
            shutdown.run_until_cancelled(refreshed).await;
        }
    }
}
