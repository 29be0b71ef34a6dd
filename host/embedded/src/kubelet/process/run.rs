//! A running process, a child of this program or adopted from an earlier run of it.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use tokio::io::unix::AsyncFd;
use tokio::process::Child;

use super::directory::ContainerDirectory;
use super::group::{kill_marked, signal_group};
use super::record::ProcessRecord;
use crate::kubelet::exit::Exit;

/// The exit code of a process whose end was not observed.
const UNKNOWN: i32 = 255;

/// A process that runs or has run.
#[derive(Debug)]
pub(crate) struct ProcessRun {
    leader: Pid,
    mark: String,
    directory: ContainerDirectory,
    watched: Watched,
}

#[derive(Debug)]
enum Watched {
    Child(Box<Child>),
    /// A process that is not a child of this program. Its pidfd becomes readable when it ends.
    Adopted(AsyncFd<OwnedFd>),
}

impl ProcessRun {
    pub(super) fn started(child: Child, leader: Pid, mark: String, directory: ContainerDirectory) -> Self {
        Self { leader, mark, directory, watched: Watched::Child(Box::new(child)) }
    }

    /// Adopts a process of an earlier run of this program. `None` if it has just ended.
    #[expect(
        deprecated,
        reason = "its replacement is unsafe, and an OwnedFd is what it asks for: open until it is dropped"
    )]
    pub(crate) fn adopted(record: &ProcessRecord, directory: ContainerDirectory) -> Option<Self> {
        let leader = record.alive()?;
        let descriptor = pidfd_open(leader, PidfdFlags::NONBLOCK).ok()?;
        // Between the check of the start time and the opening of the pidfd, the pid may have been reused.
        record.alive()?;
        let watched = Watched::Adopted(AsyncFd::new(descriptor).ok()?);
        Some(Self { leader, mark: record.mark.clone(), directory, watched })
    }

    /// Waits until the process ends. Processes that it leaves behind are killed, as in a container.
    pub(crate) async fn wait(&mut self) -> Exit {
        let status = match &mut self.watched {
            Watched::Child(child) => child.wait().await.ok(),
            Watched::Adopted(descriptor) => {
                let _ = descriptor.readable().await;
                None
            }
        };
        let (leader, mark) = (self.leader, self.mark.clone());
        let swept = tokio::task::spawn_blocking(move || {
            signal_group(leader, Signal::KILL);
            kill_marked(&mark);
        });
        let _ = swept.await;
        Exit::of_code(exit_code(&self.directory, status))
    }

    pub(crate) fn terminate(&mut self) {
        signal_group(self.leader, Signal::TERM);
    }

    pub(crate) fn kill(&mut self) {
        signal_group(self.leader, Signal::KILL);
    }
}

/// Returns the code that the launcher wrote, or else the system's, or else [`UNKNOWN`].
pub(super) fn exit_code(directory: &ContainerDirectory, status: Option<ExitStatus>) -> i32 {
    let written = fs::read_to_string(directory.exit()).ok().and_then(|code| code.trim().parse().ok());
    written
        .or_else(|| {
            status.and_then(|status| status.code().or_else(|| status.signal().map(|signal| 128 + signal)))
        })
        .unwrap_or(UNKNOWN)
}
