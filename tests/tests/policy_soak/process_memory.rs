use std::fmt;
use std::fs::read_to_string;

/// The memory of this process.
#[derive(Clone, Copy)]
pub(crate) struct ProcessMemory {
    /// The bytes that are in memory.
    pub(crate) resident: usize,
    /// The bytes of machine code that belong to no file, which is that of the policies. The code is mapped when a
    /// component is loaded, and unmapped when its last user is gone.
    pub(crate) machine_code: usize,
}

impl ProcessMemory {
    pub(crate) fn now() -> Self {
        let status = read_to_string("/proc/self/status").unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kib: usize = resident.trim().trim_end_matches(" kB").parse().unwrap();
        let maps = read_to_string("/proc/self/maps").unwrap();
        Self { resident: kib << 10, machine_code: maps.lines().map(anonymous_code).sum() }
    }
}

/// The size of a mapping, if it is executable and belongs to no file: `7f00-7f10 r-xp 00000000 00:00 0`.
fn anonymous_code(mapping: &str) -> usize {
    let words: Vec<&str> = mapping.split_whitespace().collect();
    let [range, permissions, _, _, "0"] = words[..] else { return 0 };
    let (start, end) = range.split_once('-').unwrap();
    let address = |text| usize::from_str_radix(text, 16).unwrap();
    if permissions.contains('x') { address(end) - address(start) } else { 0 }
}

impl fmt::Display for ProcessMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} KiB, of which {} KiB are code of policies",
            self.resident >> 10,
            self.machine_code >> 10
        )
    }
}
