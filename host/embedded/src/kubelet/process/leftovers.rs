//! What an earlier life of this program has left running: adopted, or ended.

use std::path::Path;
use std::{fs, io};

use jiff::Timestamp;
use rustix::process::Signal;
use thiserror::Error;

use super::directory::{ContainerDirectory, PodDirectory, StateDirectory};
use super::group::{kill_marked, signal_group};
use super::record::ProcessRecord;
use super::run::{ProcessRun, exit_code};

/// A container as it is found.
#[derive(Debug)]
pub(crate) enum Adopted {
    Running {
        run: ProcessRun,
        since: Timestamp,
        restarts: i32,
    },
    Exited {
        code: i32,
        started_at: Timestamp,
        finished_at: Timestamp,
        restarts: i32,
    },
    /// Was never started here.
    Unknown,
}

/// Looks for the container's process.
///
/// `mark` is that of all runs of the container: a process that was started just before this program died may have no
/// record; it goes.
pub(crate) fn adopt(directory: &ContainerDirectory, mark: &str, now: Timestamp) -> Adopted {
    let Some(record) = ProcessRecord::read(directory) else {
        kill_marked(mark);
        return Adopted::Unknown;
    };
    let since = record.started_at;
    let restarts = i32::try_from(record.restarts).unwrap_or_default();
    let running = record.alive().and_then(|leader| ProcessRun::adopted(leader, &record, directory.clone()));
    if let Some(run) = running {
        return Adopted::Running { run, since, restarts };
    }
    kill_marked(mark);
    let written = fs::metadata(directory.exit()).and_then(|metadata| metadata.modified()).ok();
    let finished_at = written.and_then(|time| Timestamp::try_from(time).ok()).unwrap_or(now);
    Adopted::Exited { code: exit_code(directory, None), started_at: since, finished_at, restarts }
}

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
