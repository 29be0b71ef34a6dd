//! The connections to the launchers of kernels, and the reports of the launchers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;
use wasmspawner_core::children::kernel::{KernelProcess, ProcessState};
use wasmspawner_core::names::spawn_key::SpawnKey;

/// The most commands that wait for one launcher. A launcher that takes none for so long is gone.
const MAX_COMMANDS: usize = 64;

/// A command to a launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LauncherCommand {
    /// Send a signal to the kernel's processes.
    Signal {
        /// The number of the target process.
        number: u32,
        /// The signal's number on Linux.
        signum: u8,
    },
    /// End the kernel's process, if it still runs, and start it anew.
    Launch {
        /// The number of the new process.
        number: u32,
    },
}

/// The reason why a command cannot reach a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LauncherAway {
    /// No launcher is connected: its pod has not started yet, is ending, or cannot reach the service.
    #[error("the kernel's pod is not connected to the service; start the kernel anew")]
    NotConnected,
    /// The kernel's process has ended.
    #[error("the kernel's process does not run")]
    NotRunning,
    /// The launcher does not take its commands.
    #[error("the kernel's pod takes no more commands at the moment; try again in a moment")]
    Busy,
}

/// The launchers of all kernels. After a restart of the service, each connects again and reports anew.
#[derive(Default)]
pub(crate) struct KernelLinks {
    links: Mutex<HashMap<SpawnKey, Link>>,
}

struct Link {
    process: KernelProcess,
    launcher: Option<mpsc::Sender<LauncherCommand>>,
}

impl Default for Link {
    fn default() -> Self {
        Self { process: KernelProcess::first(), launcher: None }
    }
}

impl KernelLinks {
    /// The process of a kernel, if its launcher has reported it or was commanded to start it.
    pub(crate) fn process(&self, key: &SpawnKey) -> Option<KernelProcess> {
        self.links().get(key).map(|link| link.process)
    }

    /// Forgets a kernel that is gone, or in whose place another one is started.
    pub(crate) fn forget(&self, key: &SpawnKey) {
        self.links().remove(key);
    }

    /// Connects a launcher, and returns the commands for it. Returns `None` if `most` others are connected. The
    /// connection replaces an earlier one. A process that was to be started while no launcher was connected is started
    /// now.
    pub(crate) fn connect(&self, key: &SpawnKey, most: usize) -> Option<mpsc::Receiver<LauncherCommand>> {
        let (launcher, commands) = mpsc::channel(MAX_COMMANDS);
        let mut links = self.links();
        let others = links.iter().filter(|(other, link)| *other != key && link.is_connected()).count();
        if others >= most {
            return None;
        }
        let link = links.entry(key.clone()).or_default();
        if link.process.is_to_be_launched() {
            let _ = launcher.try_send(LauncherCommand::Launch { number: link.process.number });
        }
        link.launcher = Some(launcher);
        Some(commands)
    }

    /// Notes a launcher's report about its process.
    pub(crate) fn report(&self, key: &SpawnKey, report: KernelProcess) {
        let mut links = self.links();
        let link = links.entry(key.clone()).or_default();
        link.process = link.process.reported(report);
    }

    /// Sends a signal to the kernel's processes.
    pub(crate) fn signal(&self, key: &SpawnKey, signum: u8) -> Result<(), LauncherAway> {
        let links = self.links();
        let link = links.get(key).ok_or(LauncherAway::NotConnected)?;
        if matches!(link.process.state, ProcessState::Ended(_)) {
            return Err(LauncherAway::NotRunning);
        }
        link.command(LauncherCommand::Signal { number: link.process.number, signum })
    }

    /// Starts the kernel's process anew, and returns the new process.
    pub(crate) fn restart(&self, key: &SpawnKey) -> Result<KernelProcess, LauncherAway> {
        let mut links = self.links();
        let link = links.get_mut(key).ok_or(LauncherAway::NotConnected)?;
        let next = link.process.next();
        if next.number > link.process.number {
            link.command(LauncherCommand::Launch { number: next.number })?;
        }
        link.process = next;
        Ok(next)
    }

    fn links(&self) -> MutexGuard<'_, HashMap<SpawnKey, Link>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link {
    fn is_connected(&self) -> bool {
        self.launcher.as_ref().is_some_and(|launcher| !launcher.is_closed())
    }

    fn command(&self, command: LauncherCommand) -> Result<(), LauncherAway> {
        let launcher = self.launcher.as_ref().ok_or(LauncherAway::NotConnected)?;
        launcher.try_send(command).map_err(|error| match error {
            mpsc::error::TrySendError::Closed(_) => LauncherAway::NotConnected,
            mpsc::error::TrySendError::Full(_) => LauncherAway::Busy,
        })
    }
}

#[cfg(test)]
mod tests {
    use wasmspawner_core::names::lab::LabKey;
    use wasmspawner_core::names::{ChildName, Username};

    use super::*;

    fn key() -> SpawnKey {
        let lab = LabKey::default_server(Username::parse("ada").unwrap());
        SpawnKey::kernel(lab, ChildName::parse("k").unwrap())
    }

    #[test]
    fn commands_reach_the_launcher_that_is_connected() {
        let (links, key) = (KernelLinks::default(), key());
        assert_eq!(links.signal(&key, 2), Err(LauncherAway::NotConnected));
        let mut first = links.connect(&key, 9).unwrap();
        links.report(&key, KernelProcess { number: 1, state: ProcessState::Running });
        assert_eq!(links.signal(&key, 2), Ok(()));
        assert_eq!(first.try_recv(), Ok(LauncherCommand::Signal { number: 1, signum: 2 }));
        let mut second = links.connect(&key, 9).unwrap();
        assert_eq!(links.signal(&key, 15), Ok(()));
        assert!(first.try_recv().is_err(), "the earlier connection is replaced");
        assert_eq!(second.try_recv(), Ok(LauncherCommand::Signal { number: 1, signum: 15 }));
        drop(second);
        assert_eq!(links.signal(&key, 2), Err(LauncherAway::NotConnected));
        links.report(&key, KernelProcess { number: 1, state: ProcessState::Ended(0) });
        assert_eq!(links.signal(&key, 2), Err(LauncherAway::NotRunning));
    }

    #[test]
    fn a_restart_survives_a_broken_connection_and_is_not_doubled() {
        let (links, key) = (KernelLinks::default(), key());
        let mut first = links.connect(&key, 9).unwrap();
        links.report(&key, KernelProcess { number: 1, state: ProcessState::Running });
        let restarted = links.restart(&key).unwrap();
        assert_eq!((restarted.number, links.restart(&key).unwrap().number), (2, 2));
        assert_eq!(first.try_recv(), Ok(LauncherCommand::Launch { number: 2 }));
        assert!(first.try_recv().is_err());
        let mut second = links.connect(&key, 9).unwrap();
        assert_eq!(
            second.try_recv(),
            Ok(LauncherCommand::Launch { number: 2 }),
            "it has not said that it did"
        );
        links.report(&key, KernelProcess { number: 2, state: ProcessState::Running });
        assert!(links.connect(&key, 9).unwrap().try_recv().is_err());
    }

    #[test]
    fn a_launcher_that_takes_nothing_is_busy() {
        let (links, key) = (KernelLinks::default(), key());
        let _commands = links.connect(&key, 9).unwrap();
        for _ in 0..MAX_COMMANDS {
            links.signal(&key, 2).unwrap();
        }
        assert_eq!(links.signal(&key, 2), Err(LauncherAway::Busy));
    }

    #[test]
    fn launchers_leave_connections_for_others() {
        let links = KernelLinks::default();
        let of = |name: &str| SpawnKey::kernel(key().lab, ChildName::parse(name).unwrap());
        let first = links.connect(&of("a"), 1).unwrap();
        assert!(links.connect(&of("b"), 1).is_none());
        assert!(links.connect(&of("a"), 1).is_some(), "it replaces its own connection");
        drop(first);
        assert!(links.connect(&of("b"), 1).is_some());
    }
}
