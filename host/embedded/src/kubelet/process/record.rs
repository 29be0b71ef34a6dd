//! The record of a started process. With it, a later run of this program can adopt or end the process.

use std::path::Path;
use std::{fs, io};

use jiff::Timestamp;
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::directory::{ContainerDirectory, PodDirectory, StateDirectory};
use super::group::{kill_marked, signal_group};

/// The record of a started process. Pids are reused, so the start time is compared as well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessRecord {
    pub(crate) pid: i32,
    /// The clock ticks from the machine's start to the process's (field 22 of `/proc/<pid>/stat`).
    pub(crate) start_ticks: u64,
    pub(crate) started_at: Timestamp,
    /// The number of the container's run.
    pub(crate) restarts: i32,
    /// The mark in the environment of all processes that the container has started.
    pub(crate) mark: String,
}

impl ProcessRecord {
    pub(crate) fn read(directory: &ContainerDirectory) -> Option<Self> {
        serde_json::from_slice(&fs::read(directory.record()).ok()?).ok()
    }

    pub(crate) fn write(&self, directory: &ContainerDirectory) -> io::Result<()> {
        let path = directory.record();
        let partial = path.with_extension("partial");
        fs::write(&partial, serde_json::to_vec(self)?)?;
        fs::rename(partial, path)
    }

    /// Returns the process if it still runs.
    pub(crate) fn alive(&self) -> Option<Pid> {
        let same = start_ticks(self.pid)? == self.start_ticks;
        if same { Pid::from_raw(self.pid) } else { None }
    }
}

/// Returns the start time of a process, or `None` if it has ended (even if it has not been waited for).
pub(crate) fn start_ticks(pid: i32) -> Option<u64> {
    read_stat(&fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?)
}

/// Parses `pid (name) state ppid ...`; the name may contain any characters.
fn read_stat(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// The state directory could not be read.
#[derive(Debug, Error)]
#[error("the processes recorded in {path} could not be read: check that the directory belongs to you")]
pub struct LeftoverError {
    path: String,
    source: io::Error,
}

/// Kills every process group recorded in the state directory that still runs, and all processes that it has started.
/// Returns the number of groups. Must only be used for a state directory that no running kubelet uses.
pub fn kill_leftovers(state_dir: &Path) -> Result<usize, LeftoverError> {
    let fail = |source| LeftoverError { path: state_dir.display().to_string(), source };
    let mut killed = 0;
    for (uid, pod) in StateDirectory::new(state_dir).all_pods().map_err(fail)? {
        killed += kill_pod(&uid, &pod).map_err(fail)?;
    }
    Ok(killed)
}

/// Does the same as [`kill_leftovers`] for one pod.
pub(crate) fn kill_pod(uid: &str, pod: &PodDirectory) -> io::Result<usize> {
    let mut killed = 0;
    for container in pod.all_containers()? {
        if let Some(leader) = ProcessRecord::read(&container).and_then(|record| record.alive()) {
            signal_group(leader, Signal::KILL);
            killed += 1;
        }
    }
    kill_marked(&format!("{uid}/"));
    Ok(killed)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl ProcessRecord {
        pub(in crate::kubelet::process) fn of_this_process() -> Self {
            let pid = i32::try_from(std::process::id()).unwrap();
            let start_ticks = start_ticks(pid).unwrap();
            Self { pid, start_ticks, started_at: Timestamp::UNIX_EPOCH, restarts: 0, mark: String::new() }
        }
    }

    #[test]
    fn a_process_is_known_by_its_pid_and_start_time() {
        let tail = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        assert_eq!(read_stat(&format!("7 (a) b) c) R {tail}")), Some(4242));
        assert_eq!(read_stat(&format!("7 (sh) Z {tail}")), None);
        let mut record = ProcessRecord::of_this_process();
        assert!(record.alive().is_some());
        record.start_ticks += 1;
        assert!(record.alive().is_none());
    }
}
