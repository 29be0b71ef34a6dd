//! Reloads the configuration while the service runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::config::{Config, ConfigChanges, ConfigFile};

use super::auth::{AuthSetupError, Authenticator};
use wasmspawner_spawner::{Labs, Rules};
use wasmspawner_tasks::detached::detached;

/// The period of the check for changed files.
const REREAD: Duration = Duration::from_secs(2);

/// The pause before policies that could not be loaded at the start are tried again: the first, and the longest one.
const FIRST_PAUSE: Duration = Duration::from_secs(4);
const MAX_PAUSE: Duration = Duration::from_mins(5);

/// The source of the configuration.
#[derive(Clone)]
pub struct ConfigSource {
    /// The file, if there is one.
    pub path: Option<PathBuf>,
    /// Reads the file and applies the command line to it.
    pub read: Arc<dyn Fn() -> Result<ConfigFile, String> + Send + Sync>,
}

/// Reads the configuration again, and replaces the one in use if every part of the new one is usable. Clones share it.
#[derive(Clone)]
pub struct ConfigReload {
    source: ConfigSource,
    labs: Labs,
    authenticator: Authenticator,
    /// The configuration in use. It is locked during a reload, so that two reloads do not mix.
    running: Arc<Mutex<ConfigFile>>,
}

/// The reasons for which a configuration is not used.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The file cannot be read, or has a wrong value.
    #[error("{0}")]
    Unreadable(String),
    /// A method of authentication cannot be set up.
    #[error(transparent)]
    Auth(#[from] AuthSetupError),
    /// A policy cannot be loaded.
    #[error("{0}")]
    Policy(String),
}

impl ConfigSource {
    /// Reads and checks the configuration. The error lists every problem with its key.
    pub fn load(&self) -> Result<(ConfigFile, Config), String> {
        let file = (self.read)()?;
        let config = self.check(file.clone())?;
        Ok((file, config))
    }

    /// Returns the file's name, or `--local`: the prefix of error messages.
    pub fn origin(&self) -> String {
        self.path.as_ref().map_or_else(|| "--local".to_owned(), |path| path.display().to_string())
    }

    fn check(&self, file: ConfigFile) -> Result<Config, String> {
        file.validate().map_err(|problems| {
            let origin = self.origin();
            let lines: Vec<String> = problems.iter().map(|problem| format!("{origin}: {problem}")).collect();
            lines.join("\n")
        })
    }

    async fn contents(&self) -> Option<Vec<u8>> {
        tokio::fs::read(self.path.as_ref()?).await.ok()
    }
}

impl ConfigReload {
    /// Prepares reloads for a service that runs with this configuration.
    pub fn new(source: ConfigSource, running: ConfigFile, labs: Labs, authenticator: Authenticator) -> Self {
        Self { source, labs, authenticator, running: Arc::new(Mutex::new(running)) }
    }

    /// Reads the configuration and loads the policies again. If any part cannot be used, nothing changes. A reload that
    /// has begun is completed even if the caller stops waiting for it.
    pub async fn reload(&self) -> Result<ConfigChanges, ReloadError> {
        let this = self.clone();
        detached(async move {
            // Boxed, because a configuration is large.
            let changes = Box::pin(this.replace()).await;
            this.labs.context().count_reload(&changes);
            changes
        })
        .await
    }

    async fn replace(&self) -> Result<ConfigChanges, ReloadError> {
        let mut running = self.running.lock().await;
        let (updated, config, changes) = self.read(&running).await?;
        let methods = self.authenticator.prepare(config.auth.clone()).await?;
        Box::pin(Rules::new(self.labs.clone()).replace(config))
            .await
            .map_err(|error| ReloadError::Policy(error.to_string()))?;
        self.authenticator.replace(methods);
        *running = updated;
        tracing::info!(
            applied = changes.applied.join(", "),
            need_restart = changes.need_restart.join(", "),
            "the configuration and the policies are reloaded"
        );
        Ok(changes)
    }

    async fn read(&self, running: &ConfigFile) -> Result<(ConfigFile, Config, ConfigChanges), ReloadError> {
        let (source, running) = (self.source.clone(), running.clone());
        let read = tokio::task::spawn_blocking(move || {
            let (new, _) = source.load()?;
            let updated = running.updated_to(&new);
            let config = source.check(updated.clone())?;
            Ok((updated, config, running.changes_to(&new)))
        });
        read.await.unwrap_or_else(|panic| Err(panic.to_string())).map_err(ReloadError::Unreadable)
    }

    /// Reloads after each change of the file, or of a file that policies are loaded from, until `shutdown`. A file that
    /// cannot be used changes nothing.
    pub async fn follow(&self, shutdown: CancellationToken) {
        let mut known = self.source.contents().await;
        // The file may have changed while the service started.
        if Box::pin(self.has_changed()).await {
            shutdown.run_until_cancelled(self.reload_and_log()).await;
        }
        let mut again = tokio::time::interval(REREAD);
        let mut pause = FIRST_PAUSE;
        let mut next_try = Instant::now() + pause;
        while shutdown.run_until_cancelled(again.tick()).await.is_some() {
            let contents = self.source.contents().await;
            // An editor may remove the file for a moment.
            let changed = contents.is_some() && contents != known;
            if changed {
                known = contents;
            }
            let policies = &self.labs.context().policies;
            // A registry may have been away, which no file shows.
            let due = Instant::now() >= next_try && policies.problem().is_some();
            if policies.files_have_changed().await || changed || due {
                shutdown.run_until_cancelled(self.reload_and_log()).await;
            }
            if due {
                pause = (pause * 2).min(MAX_PAUSE);
                next_try = Instant::now() + pause;
            }
        }
    }

    /// True if the configuration in the file differs from the one in use.
    async fn has_changed(&self) -> bool {
        let running = self.running.lock().await;
        self.read(&running).await.is_ok_and(|(_, _, changes)| !changes.is_empty())
    }

    /// Reloads, and logs the error instead of returning it.
    pub async fn reload_and_log(&self) {
        if let Err(error) = self.reload().await {
            tracing::error!(%error, "the configuration is not reloaded; the old one stays");
        }
    }
}
