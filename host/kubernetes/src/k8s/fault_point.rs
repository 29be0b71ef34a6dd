//! Named points at which a test can make the service abort, or a task of it panic. They are not in release builds.

/// The environment variable with the action, and the beginning of a point's name: `abort before delete Pod`, `abort after
/// create Namespace`, `panic observe ada`. `abort` and `panic` happen once per process, at the first point whose name
/// begins with this text; `panics` happens at each.
#[cfg(debug_assertions)]
const VARIABLE: &str = "WASMSPAWNER_FAULT";

/// Marks a point. `name` is called only when a test has set the variable.
///
/// # Panics
///
/// Panics if the test asks for it.
#[cfg(debug_assertions)]
pub fn reached(name: impl FnOnce() -> String) {
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
    if name().starts_with(point) && (!DONE.swap(true, Ordering::Relaxed) || what == "panics") {
        tracing::error!(what, point, "a test asks for this");
        match what.as_str() {
            "abort" => std::process::abort(),
            #[expect(clippy::panic, reason = "it is what the test asks for")]
            _ => panic!("a test asks for it"),
        }
    }
}

/// Does nothing.
#[cfg(not(debug_assertions))]
pub fn reached(_: impl FnOnce() -> String) {}
