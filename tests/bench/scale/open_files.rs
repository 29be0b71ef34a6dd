//! The limit of open files: each reader is a connection, which is a file in this process and one in the service.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Number of other files that the service and its tests open.
const OTHERS: u64 = 300;

/// Raises the limit for this process and its children as far as `connections` need. Returns the number it allows.
pub(crate) fn allow(connections: usize) -> anyhow::Result<usize> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = u64::try_from(connections)? + OTHERS;
    let most = limit.maximum.unwrap_or(u64::MAX);
    let current = limit.current.unwrap_or(u64::MAX).max(wanted.min(most));
    setrlimit(Resource::Nofile, Rlimit { current: Some(current), ..limit })?;
    Ok(connections.min(usize::try_from(current.saturating_sub(OTHERS)).unwrap_or(usize::MAX)))
}
