//! Stands in for the host in native tests: the time of a call.

use std::cell::Cell;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
}

/// Runs `hook` at this time.
pub(crate) fn at<T>(now_millis: u64, hook: impl FnOnce() -> T) -> T {
    NOW.set(now_millis);
    let result = hook();
    NOW.set(0);
    result
}

pub(crate) fn now_millis() -> u64 {
    NOW.get()
}
