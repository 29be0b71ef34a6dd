//! The record of a started process, by which it is found again after a restart of this program.

use std::path::Path;
use std::{fs, io};

use jiff::Timestamp;
use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use super::directory::ContainerDirectory;

/// A started process. Pids are reused, so the start time is compared, too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessRecord {
    pub(crate) pid: i32,
    /// Clock ticks from the machine's start to the process's (field 22 of `/proc/<pid>/stat`).
    pub(crate) start_ticks: u64,
    pub(crate) started_at: Timestamp,
    /// Which run of the container this is.
    pub(crate) restarts: u32,
    /// Found in the environment of everything the container has started.
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

    pub(crate) fn restart_count(&self) -> i32 {
        i32::try_from(self.restarts).unwrap_or_default()
    }

    /// The process if it still runs.
    pub(crate) fn alive(&self) -> Option<Pid> {
        let same = start_ticks(self.pid)? == self.start_ticks;
        if same { Pid::from_raw(self.pid) } else { None }
    }
}

/// When a process was started, `None` when it has ended (even if nobody has waited for it).
pub(crate) fn start_ticks(pid: i32) -> Option<u64> {
    read_stat(&fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?)
}

/// Reads `pid (name) state ppid ...`; the name may contain anything.
fn read_stat(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_start_time() {
        let tail = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        assert_eq!(read_stat(&format!("7 (sh) S {tail}")), Some(4242));
        assert_eq!(read_stat(&format!("7 (a) b) c) R {tail}")), Some(4242));
        assert_eq!(read_stat(&format!("7 (sh) Z {tail}")), None);
        assert_eq!(read_stat("7 (sh) S 1 2"), None);
        assert_eq!(read_stat(""), None);
    }

    #[test]
    fn this_process_is_alive_and_another_start_time_is_not() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let mut record = ProcessRecord {
            pid,
            start_ticks: start_ticks(pid).unwrap(),
            started_at: Timestamp::UNIX_EPOCH,
            restarts: 0,
            mark: String::new(),
        };
        assert!(record.alive().is_some());
        record.start_ticks += 1;
        assert!(record.alive().is_none());
    }
}
