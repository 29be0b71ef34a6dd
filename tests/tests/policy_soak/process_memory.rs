use std::fmt;
use std::fs::read_to_string;

use peak_alloc::PeakAlloc;

/// Counts what is allocated. What the process has in memory says less: an allocator keeps what was freed, more of it
/// the more threads were busy at a time.
#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// The memory that this process uses.
#[derive(Clone, Copy)]
pub(crate) struct ProcessMemory {
    /// The bytes that are allocated and not freed.
    pub(crate) heap: usize,
    /// The bytes of machine code that belong to no file, which is that of the policies. The code is mapped when a
    /// component is loaded, and unmapped when its last user is gone.
    pub(crate) machine_code: usize,
}

impl ProcessMemory {
    pub(crate) fn now() -> Self {
        let maps = read_to_string("/proc/self/maps").unwrap();
        Self { heap: HEAP.current_usage(), machine_code: maps.lines().map(anonymous_code).sum() }
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
        let [heap, code] = [self.heap, self.machine_code].map(|bytes| bytes >> 10);
        write!(f, "{heap} KiB allocated, {code} KiB of code of policies")
    }
}
