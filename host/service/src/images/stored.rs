//! Stores the known images of registries on the service's own disk, so that a restart does not begin with nothing.

use std::path::{Path, PathBuf};

use tokio::sync::Mutex;
use wasmspawner_core::images::Inventory;

use wasmspawner_files::whole_file;
use wasmspawner_registry::inventory::LiveInventory;

const FILE: &str = "images.json";

/// The known images of registries, in the state directory. Without a state directory, nothing is stored.
#[derive(Debug)]
pub(super) struct StoredInventory {
    file: Option<PathBuf>,
    /// Serializes writes, because several repositories may be read at the same time.
    writing: Mutex<()>,
}

impl StoredInventory {
    pub(super) fn new(state_dir: Option<&Path>) -> Self {
        Self { file: state_dir.map(|state_dir| state_dir.join(FILE)), writing: Mutex::default() }
    }

    /// Reads the images that were stored last. A file that cannot be used is reported, and counts as missing.
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

    /// Stores the images that are known now. A failure only makes the next start slower.
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
