//! Rules for names and first lines of files, and for the length of recipes.

use super::assert_rule;
use super::tree::{Text, read, texts};

/// Recipes are short because people read a recipe as a whole before they change it.
#[test]
fn recipes_have_at_most_100_lines_before_their_tests() {
    let recipe = |file: &Text| {
        let whole_site =
            ["plugins/default/", "plugins/rubin/"].iter().any(|site| file.path.starts_with(site));
        file.path.starts_with("plugins/") && !whole_site
    };
    let lines = |file: &Text| file.text.lines().take_while(|line| *line != "#[cfg(test)]").count();
    let recipes: Vec<Text> =
        code().into_iter().filter(|file| file.is("/src/lib.rs") && recipe(file)).collect();
    assert!(recipes.len() > 8, "only {} recipes were found", recipes.len());
    let long = recipes.iter().filter(|file| lines(file) > 100);
    let offences: Vec<String> = long.map(|file| format!("{}: {} lines", file.path, lines(file))).collect();
    assert_rule("These recipes are too long; the SDK takes what policies have in common:", &offences);
}

#[test]
fn file_names_are_not_vague() {
    const VAGUE_NAMES: [&str; 10] =
        ["util", "utils", "helper", "helpers", "common", "manager", "managers", "misc", "shared", "stuff"];
    let offences: Vec<String> =
        code().into_iter().filter(|file| VAGUE_NAMES.contains(&file.stem())).map(|file| file.path).collect();
    assert_rule("These names fit any content; name the file after the noun that it holds:", &offences);
}

#[test]
fn every_entry_file_starts_with_a_module_doc() {
    let entrance = |file: &Text| ["/mod.rs", "/lib.rs", "/main.rs"].iter().any(|name| file.is(name));
    let silent = |file: &Text| entrance(file) && !file.text.starts_with("//!");
    let offences: Vec<String> = code().into_iter().filter(silent).map(|file| file.path).collect();
    assert_rule("These files do not begin with a `//!` comment that says what the module is for:", &offences);
}

#[test]
fn the_readme_names_the_commands() {
    let readme = read("README.md");
    let offences: Vec<String> = ["make run", "make serve"]
        .into_iter()
        .filter(|command| !readme.contains(command))
        .map(str::to_owned)
        .collect();
    assert_rule("The README does not name these commands:", &offences);
}

#[test]
fn the_top_level_has_only_listed_entries() {
    const DECIDED: [&str; 8] =
        ["Cargo.toml", "host", "wit", "plugins", "sdk", "deploy", "tests", "README.md"];
    const WANTED_BY_TOOLS: [&str; 9] = [
        "CONTRIBUTING.md",
        "SECURITY.md",
        "Cargo.lock",
        "LICENSE",
        "Makefile",
        "clippy.toml",
        "deny.toml",
        "rust-toolchain.toml",
        "rustfmt.toml",
    ];
    let mut offences: Vec<String> = texts()
        .iter()
        .map(|file| file.path.split('/').next().unwrap_or_default().to_owned())
        .filter(|name| !name.starts_with('.'))
        .filter(|name| !DECIDED.contains(&name.as_str()) && !WANTED_BY_TOOLS.contains(&name.as_str()))
        .collect();
    offences.dedup();
    assert_rule(
        "The top level shows the parts of the project and nothing else; what tools and code hosts look for is listed here:",
        &offences,
    );
}

/// All sources in Rust and Python.
fn code() -> Vec<Text> {
    texts().into_iter().filter(|file| file.is(".rs") || file.is(".py")).collect()
}
