//! The allowed imports between the modules of the server.

use std::collections::{BTreeMap, BTreeSet};

use super::assert_rule;
use super::tree::{Text, read, rust_in};

const SERVER: &str = "host/server/src/";

/// The head of the README's table of modules and their imports.
const TABLE: &str = "| module of `host/server` | imports |\n|---|---|\n";

#[test]
fn modules_import_what_the_readme_says() {
    let allowed = readme_table();
    let mut imported: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut offences = Vec::new();
    for file in rust_in(SERVER) {
        let Some(module) = module(&file) else { continue };
        let Some(known) = allowed.get(&module) else {
            offences.push(format!("{}: the README's table has no row for {module}", file.path));
            continue;
        };
        for other in modules_named(&file.text) {
            if other == module || !allowed.contains_key(&other) {
                continue;
            }
            if !known.contains(&other) {
                offences.push(format!("{}: {module} imports {other}", file.path));
            }
            imported.entry(module.clone()).or_default().insert(other);
        }
    }
    for (module, known) in &allowed {
        let unused =
            known.iter().filter(|other| !imported.get(module).is_some_and(|used| used.contains(*other)));
        offences.extend(unused.map(|other| format!("README.md: {module} does not import {other}")));
    }
    assert_rule(
        "The README's table of imports differs from the code; remove the import or correct the table:",
        &offences,
    );
}

/// The rows of the README's table.
fn readme_table() -> BTreeMap<String, BTreeSet<String>> {
    let readme = read("README.md");
    let (_, after) = readme.split_once(TABLE).expect("README.md has a table of imports");
    let names =
        |cell: &str| -> BTreeSet<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let rows = after.lines().take_while(|line| line.starts_with('|'));
    rows.flat_map(|row| {
        let (module, imports) = row[1..].split_once('|').expect("two columns");
        names(module).into_iter().map(|module| (module, names(imports))).collect::<Vec<_>>()
    })
    .collect()
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
    assert_rule("Types generated from WIT may be used in wasm/ only, which converts them:", &offences);
}

#[test]
fn wire_types_stay_in_http() {
    let files =
        rust_in(SERVER).into_iter().filter(|file| !matches!(module(file).as_deref(), Some("http" | "cli")));
    let offences: Vec<String> =
        files.filter(|file| file.text.contains("utoipa")).map(|file| file.path).collect();
    assert_rule("Schemas of request and answer bodies (utoipa) belong into http/ or cli/:", &offences);
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
