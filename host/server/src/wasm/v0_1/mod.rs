//! Version 0.1.0 of the package `wasmspawner:policy`, for policies that were built for it.
//!
//! Its types are fixed. What a later version has changed is in `differences`.

mod bindings;
#[path = "../package/convert/mod.rs"]
mod convert;
mod differences;
#[path = "../package/hooks.rs"]
mod hooks;
#[path = "../package/imports.rs"]
mod imports;

use super::hook_table::PackageVersion;

const NUMBER: &str = "0.1.0";

/// This version, for the list of versions that the service implements.
pub(super) const VERSION: PackageVersion = PackageVersion {
    number: NUMBER,
    interfaces: &hooks::INTERFACES,
    add_imports: imports::add_to,
    hooks: hooks::table,
};
