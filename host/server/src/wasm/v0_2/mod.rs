//! Version 0.2.0 of the package `wasmspawner:policy`.
//!
//! The generated types stay in this module. The code of `package` is compiled once for each version, with its generated types:
//! `hooks` calls a policy with the core's types, `imports` offers the host's functions, and `convert` converts between the
//! generated types and the core's. What differs between the versions is in `differences`.

#![allow(clippy::duplicate_mod, reason = "each version compiles the code of `package` with its own types")]

mod bindings;
#[path = "../package/convert/mod.rs"]
mod convert;
mod differences;
#[path = "../package/hooks.rs"]
mod hooks;
#[path = "../package/imports.rs"]
mod imports;

use super::hook_table::PackageVersion;

const NUMBER: &str = "0.2.0";

/// This version, for the list of versions that the service implements.
pub(super) const VERSION: PackageVersion = PackageVersion {
    number: NUMBER,
    interfaces: &hooks::INTERFACES,
    add_imports: imports::add_to,
    hooks: hooks::table,
};
