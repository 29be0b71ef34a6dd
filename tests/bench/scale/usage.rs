//! CPU time and memory of a process, according to Linux (proc(5)).

use std::fs::read_to_string;

use anyhow::Context as _;

/// Milliseconds per tick of the CPU times in `/proc`: `USER_HZ` is 100 on all platforms of the tests.
const TICK_MILLIS: u64 = 10;

/// CPU time and memory of a process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    /// User and system time since the start of the process, in milliseconds.
    pub(crate) cpu_millis: u64,
    /// Resident memory now, in KiB.
    pub(crate) resident_kib: u64,
    /// Largest resident memory so far, in KiB.
    pub(crate) peak_kib: u64,
}

impl Usage {
    pub(crate) fn from_process(pid: u32) -> anyhow::Result<Self> {
        let stat = read_to_string(format!("/proc/{pid}/stat"))?;
        // The second field is the program's name in brackets, and may contain any character.
        let (_, fields) = stat.rsplit_once(')').context("no program's name")?;
        let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
        let status = read_to_string(format!("/proc/{pid}/status"))?;
        let kib = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).with_context(|| key.to_owned())
        };
        Ok(Self {
            cpu_millis: ticks.sum::<Result<u64, _>>()? * TICK_MILLIS,
            resident_kib: kib("VmRSS:")?,
            peak_kib: kib("VmHWM:")?,
        })
    }
}

/// The load average over 1, 5 and 15 minutes, and the number of cores.
pub(crate) fn load_average() -> anyhow::Result<String> {
    let text = read_to_string("/proc/loadavg")?;
    let averages: Vec<&str> = text.split_whitespace().take(3).collect();
    let cores = std::thread::available_parallelism()?;
    Ok(format!("{} on {cores} cores", averages.join(" ")))
}
