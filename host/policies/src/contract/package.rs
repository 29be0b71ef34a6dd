//! The WIT package `wasmspawner:policy`: its version, and what a component may import and export.

use wasmtime::component::{Component, Linker};

use super::bindings::VERSION;
use super::call_state::CallState;
use super::hooks::Exports;
use super::imports;
use crate::errors::LoadErrorKind;
use crate::names::message::message;

/// The prefix of the names of the package's interfaces.
const PACKAGE: &str = "wasmspawner:policy/";

/// The WASI interfaces that guests with a standard library may import. They have no effect: they give access to no
/// file, network address or environment variable.
const INERT: [&str; 6] =
    ["wasi:cli/", "wasi:clocks/", "wasi:filesystem/", "wasi:io/", "wasi:random/", "wasi:sockets/"];

/// Returns the name of the package with its version.
pub(crate) fn name() -> String {
    format!("wasmspawner:policy@{VERSION}")
}

/// Creates a linker with all interfaces that a policy may import.
pub(crate) fn linker(engine: &wasmtime::Engine) -> wasmtime::Result<Linker<CallState>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    imports::add_to(&mut linker)?;
    Ok(linker)
}

/// Checks the imports and exports of a component. Fails if it imports an interface that is not allowed, was built for
/// another version of the package, or exports an unknown hook.
pub(crate) fn check(component: &Component, engine: &wasmtime::Engine) -> Result<(), LoadErrorKind> {
    let ty = component.component_type();
    if let Some((name, _)) = ty.imports(engine).find(|(name, _)| !is_allowed(name)) {
        return Err(LoadErrorKind::Import(message(name.to_owned())));
    }
    check_exports(ty.exports(engine).map(|(name, _)| name))
}

/// Fails if an exported interface has another version, or is unknown to the service: an unknown hook would be a rule of
/// the site that is not enforced.
fn check_exports<'a>(exports: impl Iterator<Item = &'a str>) -> Result<(), LoadErrorKind> {
    let own: Vec<&str> = exports.filter_map(|name| name.strip_prefix(PACKAGE)).collect();
    let number =
        own.iter().find_map(|name| name.strip_prefix("metadata@")).ok_or(LoadErrorKind::NoMetadata)?;
    if number != VERSION {
        return Err(LoadErrorKind::OtherVersion { number: message(number.to_owned()), implemented: VERSION });
    }
    let is_known = |name: &str| {
        name.split_once('@')
            .is_some_and(|(interface, number)| number == VERSION && Exports::NAMES.contains(&interface))
    };
    match own.into_iter().find(|name| !is_known(name)) {
        Some(unknown) => {
            let name = message(format!("{PACKAGE}{unknown}"));
            Err(LoadErrorKind::UnknownHook { name, version: VERSION })
        }
        None => Ok(()),
    }
}

/// Returns true if a policy may import the interface.
fn is_allowed(import: &str) -> bool {
    let own = import.strip_prefix(PACKAGE).and_then(|name| name.split_once('@'));
    own.is_some_and(|(interface, number)| matches!(interface, "host" | "types") && number == VERSION)
        || INERT.iter().any(|prefix| import.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_that_the_service_does_not_know_are_refused() {
        let check =
            |exports: &[&str]| check_exports(exports.iter().copied()).map_err(|error| error.to_string());
        let built =
            ["wasmspawner:policy/metadata@0.1.0", "wasmspawner:policy/build-pod@0.1.0", "acme:notes/list"];
        assert_eq!(check(&built), Ok(()));
        for (exports, expected) in [
            (vec!["acme:notes/list"], "does not export wasmspawner:policy/metadata"),
            (vec!["wasmspawner:policy/metadata@0.9.0"], "0.9.0; this service implements 0.1.0"),
            (
                vec!["wasmspawner:policy/metadata@0.1.0", "wasmspawner:policy/form@0.3.0"],
                "wasmspawner:policy/form@0.3.0",
            ),
            (
                vec!["wasmspawner:policy/metadata@0.1.0", "wasmspawner:policy/quotas@0.1.0"],
                "wasmspawner:policy/quotas@0.1.0",
            ),
        ] {
            let refusal = check(&exports).unwrap_err();
            assert!(refusal.contains(expected), "{refusal}");
        }
    }

    #[test]
    fn only_our_and_inert_interfaces_may_be_imported() {
        assert!(is_allowed("wasmspawner:policy/host@0.1.0"));
        assert!(is_allowed("wasmspawner:policy/types@0.1.0"));
        assert!(is_allowed("wasi:cli/environment@0.2.6"));
        for refused in [
            "wasi:http/outgoing-handler@0.2.0",
            "wasmspawner:policy/host@0.3.0",
            "wasmspawner:policy/form@0.1.0",
            "acme:disk/files",
        ] {
            assert!(!is_allowed(refused), "{refused}");
        }
    }
}
