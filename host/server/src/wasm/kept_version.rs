use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wasmspawner_core::config::DataSource;

use crate::whole_file;
use wasmspawner_core::digest::Digest;

/// What is kept of one policy.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) policy: String,
    pub(super) in_use: Version,
    /// Whether the version in use has failed, so that it will not be a last good one.
    pub(super) failed: bool,
    /// The version that answers where the one in use fails.
    pub(super) last_good: Option<Version>,
}

/// What makes a version. Grants and limits are those of the present, so they are not kept.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Version {
    pub(super) component: Digest,
    pub(super) config: Value,
    pub(super) data: BTreeMap<String, DataSource>,
    /// The digest of the public key that has signed it.
    pub(super) key: Option<Digest>,
}

impl Kept {
    pub(super) fn read(file: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(file).ok()?).ok()
    }

    pub(super) fn write(&self, file: &Path) -> io::Result<()> {
        whole_file::write(file, &serde_json::to_vec(self)?)
    }

    /// The only consequence is that no version answers where the policy fails after a restart.
    pub(super) fn not_written(&self, error: &io::Error) {
        let policy = &self.policy;
        tracing::warn!(policy, %error, "the version of the policy in use cannot be kept for a restart");
    }
}

/// A version in use, and where it is kept.
pub(super) struct KeptVersion {
    pub(super) file: Arc<Path>,
    pub(super) component: Digest,
}

impl KeptVersion {
    /// Notes that the version has failed.
    pub(super) fn has_failed(&self) {
        let (file, component) = (Arc::clone(&self.file), self.component);
        tokio::task::spawn_blocking(move || {
            let Some(mut kept) = Kept::read(&file).filter(|kept| kept.in_use.component == component) else {
                return;
            };
            kept.failed = true;
            if let Err(error) = kept.write(&file) {
                kept.not_written(&error);
            }
        });
    }
}
