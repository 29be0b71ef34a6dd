//! Named points at which a test lets the service die, or a task of it panic. Not in release builds.

/// The variable that names a point: `abort before delete Pod`, `abort after create Namespace`, `panic observe ada`. The
/// first time a point is reached whose name begins so, that happens; once in a process.
#[cfg(debug_assertions)]
const VARIABLE: &str = "WASMSPAWNER_FAULT";

/// A point is reached. Its name is made only where it is needed.
#[cfg(debug_assertions)]
pub(crate) fn reached(name: impl FnOnce() -> String) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    static WANTED: OnceLock<Option<(String, String)>> = OnceLock::new();
    static DONE: AtomicBool = AtomicBool::new(false);
    let wanted = WANTED.get_or_init(|| {
        let text = std::env::var(VARIABLE).ok()?;
        let (what, point) = text.split_once(' ')?;
        Some((what.to_owned(), point.to_owned()))
    });
    let Some((what, point)) = wanted else { return };
    if name().starts_with(point) && !DONE.swap(true, Ordering::Relaxed) {
        tracing::error!(what, point, "a test asks for this");
        match what.as_str() {
            "abort" => std::process::abort(),
            #[expect(clippy::panic, reason = "it is what the test asks for")]
            _ => panic!("a test asks for it"),
        }
    }
}

#[cfg(not(debug_assertions))]
pub(crate) fn reached(_: impl FnOnce() -> String) {}
