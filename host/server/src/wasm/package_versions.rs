//! The versions of the WIT package that the service implements, and which of them a component was built for.

use wasmtime::component::{Component, Linker};

use super::call_state::CallState;
use super::errors::LoadErrorKind;
use super::hook_table::PackageVersion;
use super::message::message;
use super::{v0_1, v0_2};

/// All versions that a policy may be built for, oldest first.
const VERSIONS: [PackageVersion; 2] = [v0_1::VERSION, v0_2::VERSION];

/// What the names of the package's interfaces begin with.
const PACKAGE: &str = "wasmspawner:policy/";

/// The WASI interfaces that guests with a standard library may import. They have no effect: they give access to no
/// file, no network address and no environment variable.
const INERT: [&str; 6] =
    ["wasi:cli/", "wasi:clocks/", "wasi:filesystem/", "wasi:io/", "wasi:random/", "wasi:sockets/"];

/// A linker with all interfaces that a policy may import.
pub(super) fn linker(engine: &wasmtime::Engine) -> wasmtime::Result<Linker<CallState>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    for version in VERSIONS {
        (version.add_imports)(&mut linker)?;
    }
    Ok(linker)
}

/// The version of the package that the component was built for. Its imports are checked first.
pub(super) fn of(
    component: &Component,
    engine: &wasmtime::Engine,
) -> Result<&'static PackageVersion, LoadErrorKind> {
    let ty = component.component_type();
    if let Some((name, _)) = ty.imports(engine).find(|(name, _)| !allowed(name)) {
        return Err(LoadErrorKind::Import(message(name.to_owned())));
    }
    built_for(ty.exports(engine).map(|(name, _)| name))
}

/// The version of the package whose interfaces a component exports. All must be of one version, and known to the
/// service: an unknown hook would be a rule of the site that is not enforced.
fn built_for<'a>(exports: impl Iterator<Item = &'a str>) -> Result<&'static PackageVersion, LoadErrorKind> {
    let own: Vec<&str> = exports.filter_map(|name| name.strip_prefix(PACKAGE)).collect();
    let number =
        own.iter().find_map(|name| name.strip_prefix("metadata@")).ok_or(LoadErrorKind::NoMetadata)?;
    let version = VERSIONS.iter().find(|version| version.number == number).ok_or_else(|| {
        let implemented = VERSIONS.map(|version| version.number).join(", ");
        LoadErrorKind::OtherVersion { number: message(number.to_owned()), implemented }
    })?;
    let known = |name: &str| {
        name.split_once('@').is_some_and(|(interface, number)| {
            number == version.number && version.interfaces.contains(&interface)
        })
    };
    match own.into_iter().find(|name| !known(name)) {
        Some(unknown) => {
            let name = message(format!("{PACKAGE}{unknown}"));
            Err(LoadErrorKind::UnknownHook { name, version: version.number })
        }
        None => Ok(version),
    }
}

/// True if a policy may import the interface.
fn allowed(import: &str) -> bool {
    let own = import.strip_prefix(PACKAGE).and_then(|name| name.split_once('@'));
    let ours = |(interface, number)| {
        matches!(interface, "host" | "types") && VERSIONS.iter().any(|version| version.number == number)
    };
    own.is_some_and(ours) || INERT.iter().any(|prefix| import.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(exports: &[&str]) -> Result<&'static str, String> {
        built_for(exports.iter().copied()).map(|version| version.number).map_err(|error| error.to_string())
    }

    #[test]
    fn the_version_is_that_of_the_exported_interfaces() {
        let built_for_0_1 = ["wasmspawner:policy/metadata@0.1.0", "wasmspawner:policy/build-pod@0.1.0"];
        assert_eq!(version(&built_for_0_1).as_deref(), Ok("0.1.0"));
        assert_eq!(
            version(&["wasmspawner:policy/metadata@0.1.0", "acme:notes/list"]).as_deref(),
            Ok("0.1.0")
        );
    }

    #[test]
    fn exports_that_the_service_does_not_know_are_refused() {
        for (exports, expected) in [
            (vec!["acme:notes/list"], "does not export wasmspawner:policy/metadata"),
            (vec!["wasmspawner:policy/metadata@0.9.0"], "0.9.0; this service implements 0.1.0, 0.2.0"),
            (
                vec!["wasmspawner:policy/metadata@0.1.0", "wasmspawner:policy/form@0.2.0"],
                "wasmspawner:policy/form@0.2.0",
            ),
            (
                vec!["wasmspawner:policy/metadata@0.1.0", "wasmspawner:policy/quotas@0.1.0"],
                "wasmspawner:policy/quotas@0.1.0",
            ),
        ] {
            let refusal = version(&exports).unwrap_err();
            assert!(refusal.contains(expected), "{refusal}");
        }
    }

    #[test]
    fn only_our_and_inert_interfaces_may_be_imported() {
        assert!(allowed("wasmspawner:policy/host@0.1.0"));
        assert!(allowed("wasmspawner:policy/types@0.2.0"));
        assert!(allowed("wasi:cli/environment@0.2.6"));
        for refused in [
            "wasi:http/outgoing-handler@0.2.0",
            "wasmspawner:policy/host@0.3.0",
            "wasmspawner:policy/form@0.1.0",
            "acme:disk/files",
        ] {
            assert!(!allowed(refused), "{refused}");
        }
    }
}
