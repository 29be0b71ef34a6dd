//! Keeps what registries had on the service's own disk, so that a restart does not begin with nothing.

use std::path::{Path, PathBuf};

use tokio::sync::Mutex;
use wasmspawner_core::images::Inventory;

use wasmspawner_files::whole_file;
use wasmspawner_registry::inventory::LiveInventory;

const FILE: &str = "images.json";

/// What registries had, in the state directory; nothing is kept without one.
#[derive(Debug)]
pub(super) struct StoredInventory {
    file: Option<PathBuf>,
    /// Several repositories may have been read at the same time.
    writing: Mutex<()>,
}

impl StoredInventory {
    pub(super) fn new(state_dir: Option<&Path>) -> Self {
        Self { file: state_dir.map(|state_dir| state_dir.join(FILE)), writing: Mutex::default() }
    }

    /// What was stored last. A file that cannot be used is reported, and counts as none.
    pub(super) async fn read(&self) -> Inventory {
        let Some(file) = &self.file else { return Inventory::default() };
        let text = match tokio::fs::read(file).await {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Inventory::default(),
            Err(error) => return self.unusable(&error),
        };
        serde_json::from_slice(&text).unwrap_or_else(|error| self.unusable(&error))
    }

    fn unusable(&self, error: &impl std::fmt::Display) -> Inventory {
        tracing::warn!(file = ?self.file, %error, "the images of the last time cannot be read; the registries are asked again");
        Inventory::default()
    }

    /// Stores what is known now. If that fails, only the next start is slower.
    pub(super) async fn write(&self, inventory: &LiveInventory) {
        let Some(file) = &self.file else { return };
        let _alone = self.writing.lock().await;
        let (path, known) = (file.clone(), inventory.registries());
        let writing =
            tokio::task::spawn_blocking(move || whole_file::write(&path, &serde_json::to_vec(&*known)?));
        if let Err(error) = writing.await.unwrap_or_else(|error| Err(error.into())) {
            tracing::warn!(file = %file.display(), %error, "what is known about images cannot be stored");
        }
    }
}
