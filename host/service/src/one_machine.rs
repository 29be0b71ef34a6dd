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

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context as _;

/// Replaces the file in one step, so that a reader finds the old text or the new one. The file holds a credential, so
/// nobody else may read it.
pub(crate) fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    let write = || -> std::io::Result<()> {
        let _ = std::fs::remove_file(&beside);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(text.as_bytes())?;
        std::fs::rename(&beside, path)
    };
    write().with_context(|| format!("{} cannot be written", path.display()))
}
