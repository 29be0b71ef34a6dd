//! The one-machine cluster in this process: its API server, its kubelet and the kubeconfig that leads there.
//!
//! The cluster is the Cargo feature `embedded`. Without the feature, [`OneMachine`] cannot be opened, and the error
//! says how to go on.

#[cfg(not(feature = "embedded"))]
mod absent;
#[cfg(feature = "embedded")]
mod cluster;

#[cfg(not(feature = "embedded"))]
pub(crate) use absent::OneMachine;
#[cfg(feature = "embedded")]
pub(crate) use cluster::OneMachine;

use std::path::Path;

use anyhow::Context as _;
use wasmspawner_files::whole_file;

/// Replaces the file in one step, so that a reader finds the old text or the new one. The file holds a credential, so
/// nobody else may read it.
pub(crate) fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    whole_file::write_private(path, text.as_bytes())
        .with_context(|| format!("{} cannot be written", path.display()))
}
