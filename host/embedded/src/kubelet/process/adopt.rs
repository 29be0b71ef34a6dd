//! What has become of a container while this program was away.

use std::fs;

use jiff::Timestamp;

use super::{
    directory::ContainerDirectory,
    group::kill_marked,
    record::ProcessRecord,
    run::{ProcessRun, exit_code},
};

/// A container as it is found.
#[derive(Debug)]
pub(crate) enum Adopted {
    Running {
        run: ProcessRun,
        since: Timestamp,
        restarts: u32,
    },
    Exited {
        code: i32,
        started_at: Timestamp,
        finished_at: Timestamp,
        restarts: u32,
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
    let (since, restarts) = (record.started_at, record.restarts);
    let running = record.alive().and_then(|leader| ProcessRun::adopted(leader, &record, directory.clone()));
    if let Some(run) = running {
        return Adopted::Running { run, since, restarts };
    }
    kill_marked(mark);
    let written = fs::metadata(directory.exit()).and_then(|metadata| metadata.modified()).ok();
    let finished_at = written.and_then(|time| Timestamp::try_from(time).ok()).unwrap_or(now);
    Adopted::Exited { code: exit_code(directory, None), started_at: since, finished_at, restarts }
}
