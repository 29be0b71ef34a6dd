//! Ends what an earlier run of this program has left running.

use std::io;
use std::path::Path;

use rustix::process::Signal;
use thiserror::Error;

use super::directory::{PodDirectory, StateDirectory};
use super::group::{kill_marked, signal_group};
use super::record::ProcessRecord;

/// The state directory could not be read.
#[derive(Debug, Error)]
#[error("the processes recorded in {path} could not be read: check that the directory belongs to you")]
pub struct LeftoverError {
    path: String,
    source: io::Error,
}

/// Kills (KILL, at once) every process group recorded in the state directory that still runs, and whatever its
/// processes have started. Returns how many groups there were. Only for a state directory that no running kubelet uses.
pub fn kill_leftovers(state_dir: &Path) -> Result<usize, LeftoverError> {
    let fail = |source| LeftoverError { path: state_dir.display().to_string(), source };
    let mut killed = 0;
    for (uid, pod) in StateDirectory::new(state_dir).all_pods().map_err(fail)? {
        killed += kill_pod(&uid, &pod).map_err(fail)?;
    }
    Ok(killed)
}

/// The same for one pod.
pub(crate) fn kill_pod(uid: &str, pod: &PodDirectory) -> io::Result<usize> {
    let mut killed = 0;
    for container in pod.all_containers()? {
        let Some(record) = ProcessRecord::read(&container) else { continue };
        if let Some(leader) = record.alive() {
            signal_group(leader, Signal::KILL);
            killed += 1;
        }
    }
    kill_marked(&format!("{uid}/"));
    Ok(killed)
}
