//! The process of a kernel, as its launcher reports it and its clients control it.

use serde::{Deserialize, Serialize};

/// The process of a kernel. A kernel that is restarted in the same pod gets a new process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelProcess {
    /// The number of the process in its pod, counted from 1.
    pub number: u32,
    /// The state of the process.
    pub state: ProcessState,
}

/// The state of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessState {
    /// The process is to be started.
    Starting,
    /// The process runs.
    Running,
    /// The process has ended with this code; a negative code is the signal that ended it.
    Ended(i32),
}

impl KernelProcess {
    /// Returns the first process of a pod, which starts by itself.
    pub fn first() -> Self {
        Self { number: 1, state: ProcessState::Starting }
    }

    /// Returns the process that replaces this one. A process that is still to be started replaces itself, so that two
    /// commands do not start two processes.
    #[must_use]
    pub fn next(self) -> Self {
        match self.state {
            ProcessState::Starting => self,
            ProcessState::Running | ProcessState::Ended(_) => {
                Self { number: self.number.saturating_add(1), state: ProcessState::Starting }
            }
        }
    }

    /// Returns the process after a report of the launcher. Reports about an earlier process come too late and are
    /// ignored. A report about a later process is accepted, because the service may have lost its command in a restart.
    #[must_use]
    pub fn reported(self, report: Self) -> Self {
        if report.number < self.number { self } else { report }
    }

    /// Returns true if the launcher has to be instructed to start this process, because it has not reported it yet.
    pub fn is_to_be_launched(self) -> bool {
        self.number > 1 && self.state == ProcessState::Starting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_reports_do_not_undo_a_command() {
        let process = |number, state| KernelProcess { number, state };
        let first = KernelProcess::first().reported(process(1, ProcessState::Running));
        assert_eq!(first, process(1, ProcessState::Running));
        let second = first.next();
        assert_eq!(second, process(2, ProcessState::Starting));
        assert!(second.is_to_be_launched() && !KernelProcess::first().is_to_be_launched());
        assert_eq!(second.next(), second, "one restart at a time");
        assert_eq!(second.reported(process(1, ProcessState::Ended(-9))), second);
        let running = second.reported(process(2, ProcessState::Running));
        assert_eq!(running.reported(process(2, ProcessState::Ended(0))), process(2, ProcessState::Ended(0)));
        assert_eq!(KernelProcess::first().reported(process(4, ProcessState::Running)).number, 4);
    }
}
