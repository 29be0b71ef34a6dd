//! What the node has.

/// CPU in thousandths, memory in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capacity {
    pub(crate) cpu_milli: i128,
    pub(crate) memory: i128,
    pub(crate) pods: u32,
}

impl Capacity {
    /// The machine's.
    pub(crate) fn of_machine() -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Self {
            cpu_milli: i128::try_from(cpus).unwrap_or(1) * 1000,
            memory: total_memory(&meminfo).unwrap_or(1 << 30),
            pods: 1000,
        }
    }

    /// More than any test will ask for.
    pub(crate) fn simulated() -> Self {
        Self { cpu_milli: 10_000_000, memory: 1 << 50, pods: 100_000 }
    }
}

/// `MemTotal:  24041544 kB` in bytes.
fn total_memory(meminfo: &str) -> Option<i128> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<i128>().ok().map(|kibibytes| kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_the_machine() {
        assert_eq!(total_memory("MemTotal:       1000 kB\nMemFree: 1 kB\n"), Some(1_024_000));
        assert_eq!(total_memory(""), None);
        assert!(Capacity::of_machine().memory > 0);
    }
}
