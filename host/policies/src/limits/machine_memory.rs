//! The memory limit of this process.

use std::fs;
use std::path::{Path, PathBuf};

/// The assumed memory if no limit is known, in bytes.
const UNKNOWN: usize = 1 << 30;

/// Returns the memory that this process may use, in bytes: the limit of its control groups, or the memory of the
/// machine.
pub(crate) fn limit() -> usize {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    limit_files(&groups, Path::new("/sys/fs/cgroup"))
        .filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok())
        .chain(machine)
        .min()
        .unwrap_or(UNKNOWN)
}

/// Returns the files with the limits of a process's control groups and of their parents, for version 2 of the kernel's
/// interface and for version 1. `groups` is the content of `/proc/self/cgroup`.
fn limit_files(groups: &str, root: &Path) -> impl Iterator<Item = PathBuf> {
    groups.lines().flat_map(move |line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let (root, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => return Vec::new(),
        };
        let group = Path::new(group.trim_start_matches('/'));
        group.ancestors().map(|group| root.join(group).join(file)).collect()
    })
}

/// Returns `MemTotal` of `/proc/meminfo`, in bytes.
fn total(meminfo: &str) -> Option<usize> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: usize = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_of_all_groups_around_the_process_hold() {
        let files = |groups: &str| {
            let files = limit_files(groups, Path::new("/g"));
            files.map(|file| file.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(files("0::/\n"), ["/g/memory.max"]);
        assert_eq!(files("0::/a/b.scope\n"), ["/g/a/b.scope/memory.max", "/g/a/memory.max", "/g/memory.max"]);
        let first_version = "9:cpu,cpuacct:/x\n4:memory:/pod\n0::/\n";
        let expected =
            ["/g/memory/pod/memory.limit_in_bytes", "/g/memory/memory.limit_in_bytes", "/g/memory.max"];
        assert_eq!(files(first_version), expected);
        assert!(files("").is_empty());
    }

    #[test]
    fn without_control_groups_the_machine_s_memory_is_the_limit() {
        assert_eq!(total("MemFree: 1 kB\nMemTotal:       24512 kB\n"), Some(24512 * 1024));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        assert!(limit() > 0);
    }
}
