//! Signals to everything a container has started.

use std::fs;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// The environment variable that marks what belongs to a container, also what has left its process group (Jupyter
/// starts each kernel in a session of its own). Its value is `<pod uid>/<container>/<restarts>/`.
pub(crate) const MARK: &str = "WASMSPAWNER_CONTAINER";

/// Signals the process group; an empty group is none of our business.
pub(crate) fn signal_group(leader: Pid, signal: Signal) {
    if let Err(error) = kill_process_group(leader, signal)
        && error != rustix::io::Errno::SRCH
    {
        tracing::warn!(group = leader.as_raw_nonzero().get(), %error, "a process group could not be signalled");
    }
}

/// Kills every process whose mark begins with this one. Blocks: it reads `/proc`.
pub(crate) fn kill_marked(mark: &str) {
    let wanted = format!("{MARK}={mark}").into_bytes();
    let Ok(entries) = fs::read_dir("/proc") else { return };
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw)
        else {
            continue;
        };
        // Unreadable: another user's, or gone.
        let Ok(environment) = fs::read(entry.path().join("environ")) else { continue };
        if environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(&wanted)) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}
