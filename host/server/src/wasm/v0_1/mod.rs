//! Version 0.1.0 of the package `wasmspawner:policy`.
//!
//! The generated types stay in this module: `hooks` calls a policy with the core's types, `imports` offers the host's
//! functions, and `convert` converts between the generated types and the core's.

mod bindings;
mod convert;
mod hooks;
mod imports;

use wasmtime::component::HasSelf;

use super::call_state::CallState;
use super::hook_table::PackageVersion;

/// This version, for the list of versions that the service implements.
pub(super) const VERSION: PackageVersion = PackageVersion {
    number: "0.1.0",
    interfaces: &[
        "metadata",
        "config",
        "prepare",
        "form",
        "quota",
        "authorize",
        "inject",
        "events",
        "build-pod",
        "lab-server",
        "images",
    ],
    add_imports: |linker| bindings::FullPolicy::add_to_linker::<_, HasSelf<CallState>>(linker, |state| state),
    hooks: hooks::table,
};
