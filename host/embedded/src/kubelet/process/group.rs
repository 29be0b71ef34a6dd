//! Signals to all processes that a container has started.

use std::fs;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// The environment variable that marks the processes of a container, including those that have left its process group
/// (Jupyter starts each kernel in a session of its own). Its value is `<pod uid>/<container>/<restarts>/`.
pub(crate) const MARK: &str = "WASMSPAWNER_CONTAINER";

/// Signals the process group. An empty group is not an error.
pub(crate) fn signal_group(leader: Pid, signal: Signal) {
    if let Err(error) = kill_process_group(leader, signal)
        && error != rustix::io::Errno::SRCH
    {
        tracing::warn!(group = leader.as_raw_nonzero().get(), %error, "a process group could not be signalled");
    }
}

/// The limit on the number of repetitions that find processes which were started while the others were killed.
const ROUNDS: usize = 100;

/// Kills every process whose mark begins with this one, until there is none. Blocks, because it reads `/proc`.
pub(crate) fn kill_marked(mark: &str) {
    let wanted = format!("{MARK}={mark}").into_bytes();
    for _ in 0..ROUNDS {
        let found = marked(&wanted);
        if found.is_empty() {
            return;
        }
        for pid in found {
            // The process may already have ended.
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    tracing::warn!(mark, "some processes of a container cannot be killed");
}

/// Finds the processes with this variable in their environment. Those of other users cannot be read, and dead processes
/// have no environment.
fn marked(wanted: &[u8]) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
            let environment = fs::read(entry.path().join("environ")).ok()?;
            environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(wanted)).then_some(pid)
        })
        .collect()
}
