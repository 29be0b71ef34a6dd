//! The allowed imports between the modules of the server.

use super::assert_rule;
use super::tree::{Text, rust_in};

const SERVER: &str = "host/server/src/";

/// Each module, and the modules it may import. `run` connects all modules, and only `cli` may import it.
const ALLOWED_IMPORTS: [(&str, &[&str]); 14] = [
    ("cli", &["images", "k8s", "one_machine", "run", "spawner", "telemetry", "wasm"]),
    ("http", &["outgoing", "spawner", "telemetry"]),
    ("spawner", &["history", "hub", "images", "k8s", "records", "store", "telemetry", "wasm"]),
    ("history", &[]),
    ("hub", &["outgoing"]),
    ("outgoing", &[]),
    ("records", &["k8s"]),
    ("store", &[]),
    ("images", &["telemetry"]),
    ("k8s", &["telemetry"]),
    ("wasm", &["telemetry"]),
    ("telemetry", &[]),
    ("one_machine", &[]),
    (
        "run",
        &[
            "history",
            "http",
            "hub",
            "images",
            "k8s",
            "one_machine",
            "records",
            "spawner",
            "store",
            "telemetry",
            "wasm",
        ],
    ),
];

#[test]
fn modules_know_only_the_modules_below_them() {
    let mut offences = Vec::new();
    for file in rust_in(SERVER) {
        let Some(module) = module(&file) else { continue };
        let Some((_, known)) = ALLOWED_IMPORTS.iter().find(|(name, _)| *name == module) else {
            offences.push(format!("{}: the module {module:?} has no line in ALLOWED_IMPORTS", file.path));
            continue;
        };
        for other in modules_named(&file.text) {
            if other != module
                && ALLOWED_IMPORTS.iter().any(|(name, _)| *name == other)
                && !known.contains(&other.as_str())
            {
                offences.push(format!("{}: {module} names crate::{other}", file.path));
            }
        }
    }
    assert_rule(
        "Imports go one way, run -> cli/http -> spawner -> {k8s, wasm, images}, so that each can be read alone:",
        &offences,
    );
}

#[test]
fn generated_wit_types_stay_in_their_module() {
    let mut offences = Vec::new();
    for file in rust_in(SERVER) {
        let inside = module(&file).as_deref() == Some("wasm");
        let exported = file.path.ends_with("wasm/mod.rs") && file.text.contains("pub mod bindings");
        if exported || (!inside && file.text.contains("bindings::")) {
            offences.push(file.path);
        }
    }
    assert_rule(
        "Types generated from WIT change with every version of it; wasm/ converts them at its door:",
        &offences,
    );
}

#[test]
fn wire_types_stay_in_http() {
    let files =
        rust_in(SERVER).into_iter().filter(|file| !matches!(module(file).as_deref(), Some("http" | "cli")));
    let offences: Vec<String> =
        files.filter(|file| file.text.contains("utoipa")).map(|file| file.path).collect();
    assert_rule("What goes over the wire is described where it is sent, in http/:", &offences);
}

/// The module of a file: its folder, or the file itself. The crate's roots belong to no module.
fn module(file: &Text) -> Option<String> {
    let path = file.path.strip_prefix(SERVER)?;
    let module = path.split('/').next()?.trim_end_matches(".rs");
    (!matches!(module, "lib" | "main")).then(|| module.to_owned())
}

/// The names that follow `crate::`, including each name of `crate::{a, b::c}`.
fn modules_named(text: &str) -> Vec<String> {
    let ident =
        |text: &str| -> String { text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let mut names = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        let Some(group) = rest.strip_prefix('{') else {
            names.push(ident(rest));
            continue;
        };
        let mut depth = 0;
        let mut fresh = true;
        for (at, c) in group.char_indices() {
            match c {
                '}' if depth == 0 => break,
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => fresh = true,
                c if fresh && depth == 0 && c.is_alphabetic() => {
                    names.push(ident(&group[at..]));
                    fresh = false;
                }
                _ => {}
            }
        }
    }
    names
}

#[test]
fn imports_are_found_in_every_form() {
    let text = "use crate::http;\nuse crate::{k8s::{Client, x}, wasm};\nlet a = crate::spawner::go();";
    assert_eq!(modules_named(text), ["http", "k8s", "wasm", "spawner"]);
}
