//! Starts drivers, and replaces drivers that panic.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::{mpsc, watch};
use wasmspawner_core::names::spawn_key::SpawnKey;

use super::Driver;
use super::recover;
use crate::labs::Labs;
use crate::labs::env::Env;
use crate::labs::registry::Handle;
use crate::published::view::View;
use wasmspawner_kubernetes::k8s::on_behalf_of;
use wasmspawner_kubernetes::records::{StoredSpawn, UnreadableRecord};

/// The pause before a driver that panicked is replaced: after the first panic, and the longest one after several.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_mins(1);

impl Labs {
    /// Starts a driver for a lab whose record was found at the start of the service, unless the lab has a driver. `env`
    /// is `None` if it is not known yet.
    pub(crate) fn adopt(&self, key: &SpawnKey, stored: StoredSpawn, env: Option<Env>) {
        let (handle, driver) = self.driver(key);
        if !self.registry().insert_first(key, handle) {
            return;
        }
        let later = env.is_none().then(|| (stored.spec.place.clone(), stored.uid.clone()));
        let (name, uid) = (stored.name.to_string(), stored.uid.clone());
        // The recovered lab is published here, before the service becomes ready.
        let recover = || recover::recover(driver, stored, env.unwrap_or_default());
        let recovered = std::panic::catch_unwind(AssertUnwindSafe(recover));
        if let Ok(driver) = recovered {
            self.unreadable().remove(&uid);
            tokio::spawn(self.clone().run(key.clone(), driver));
            if let Some((place, spawn)) = later {
                self.read_env_later(key.clone(), place, spawn);
            }
        } else {
            self.registry().remove(key);
            self.context().metrics.panicked();
            let problem = "the service panics when it continues from it".to_owned();
            self.unreadable().add(UnreadableRecord { name, uid, problem });
            tracing::error!(user = %key.lab.user, server = %key.lab.server, "a lab could not be adopted from its record, and is left alone");
        }
    }

    /// Runs a driver to its end. A driver that panics is replaced by one made from the lab's record.
    pub(crate) async fn run(self, key: SpawnKey, driver: Box<Driver>) {
        let mut next = Some(driver);
        let mut pause = FIRST_PAUSE;
        loop {
            let life = async {
                let driver = match next.take() {
                    Some(driver) => Some(driver),
                    None => Box::pin(self.replacement(&key)).await,
                };
                if let Some(driver) = driver {
                    on_behalf_of(key.lab.user.clone(), driver.run()).await;
                }
            };
            if AssertUnwindSafe(life).catch_unwind().await.is_ok() {
                return;
            }
            self.context().metrics.panicked();
            tracing::error!(user = %key.lab.user, server = %key.lab.server, ?pause, "the driver of a lab panicked and is replaced from the lab's record");
            tokio::time::sleep(pause).await;
            pause = (pause * 4).min(MAX_PAUSE);
        }
    }

    /// Makes a driver in place of one that panicked. Returns `None` if there is no record to make it from. Readers of
    /// the operation's log continue with the new driver, or come to the end of the log.
    async fn replacement(&self, key: &SpawnKey) -> Option<Box<Driver>> {
        let found = recover::read_again(self.context(), key).await;
        let log = self.view(key).and_then(|view| view.log);
        let Some(stored) = found else {
            self.registry().remove(key);
            self.note_change(key, None);
            log.inspect(|log| log.close());
            return None;
        };
        let (handle, driver) = self.driver(key);
        let (place, spawn) = (stored.spec.place.clone(), stored.uid.clone());
        let mut driver = recover::recover(driver, stored, Env::new());
        driver.continue_log(log);
        self.registry().insert(key.clone(), handle);
        self.read_env_later(key.clone(), place, spawn);
        Some(driver)
    }

    pub(crate) fn driver(&self, key: &SpawnKey) -> (Handle, Box<Driver>) {
        let (inbox, messages) = mpsc::unbounded_channel();
        let (publish, view) = watch::channel(View::default());
        let driver = Driver::new(key.clone(), Arc::clone(self.context()), self.clone(), messages, publish);
        (Handle { inbox, view }, Box::new(driver))
    }
}
