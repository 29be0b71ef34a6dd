//! The allowed dependencies of each package.

use std::collections::BTreeSet;

use super::assert_rule;
use super::tree::{read, texts};

#[test]
fn the_core_depends_on_data_crates_only() {
    const DATA: [&str; 10] = [
        "jiff",
        "k8s-openapi",
        "regex-lite",
        "schemars",
        "serde",
        "serde_json",
        "sha2",
        "thiserror",
        "uuid",
        "wildmatch",
    ];
    let offences: Vec<String> = dependencies(&read("host/core/Cargo.toml"))
        .into_iter()
        .filter(|name| !DATA.contains(&name.as_str()))
        .collect();
    assert_rule(
        "host/core may only use the listed crates, which have no IO, no clock and no runtime:",
        &offences,
    );
}

#[test]
fn the_one_machine_cluster_depends_on_no_other_crate_of_the_workspace() {
    let offences = ours(&dependencies(&read("host/embedded/Cargo.toml")));
    assert_rule("host/embedded must not depend on another crate of this workspace:", &offences);
}

#[test]
fn policies_depend_on_the_sdk_only() {
    let mut offences = Vec::new();
    for manifest in texts().iter().filter(|file| file.path.starts_with("plugins/") && file.is("Cargo.toml")) {
        let mut ours = ours(&dependencies(&manifest.text));
        ours.retain(|name| name != "wasmspawner-sdk");
        offences.extend(ours.iter().map(|name| format!("{}: {name}", manifest.path)));
    }
    assert_rule("A policy in plugins/ may depend on sdk/rust only, like a site's own policies:", &offences);
}

#[test]
fn versions_are_stated_once() {
    let mut offences = Vec::new();
    for manifest in texts().iter().filter(|file| file.is("/Cargo.toml")) {
        for line in manifest.text.lines().filter(|line| line.contains("version = \"")) {
            offences.push(format!("{}: {line}", manifest.path));
        }
    }
    assert_rule("State these versions in the workspace's Cargo.toml instead:", &offences);
}

#[test]
fn crates_of_the_host_use_what_the_readme_says() {
    let readme = read("README.md");
    let rows = readme.lines().filter_map(|line| line.strip_prefix("| `host/"));
    let mut offences = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        let Some((name, "")) = cells[0].split_once('`') else { continue };
        let said = cells[2].split('`').skip(1).step_by(2).map(str::to_owned);
        let said: BTreeSet<String> = said.collect();
        let ours = ours(&dependencies(&read(&format!("host/{name}/Cargo.toml"))));
        let used = ours.iter().filter_map(|ours| ours.strip_prefix("wasmspawner-")).map(str::to_owned);
        let used: BTreeSet<String> = used.collect();
        if said != used {
            offences.push(format!("host/{name}: the README says {said:?}, and Cargo.toml {used:?}"));
        }
    }
    assert_rule("The README's map of crates differs from what they depend on:", &offences);
}

fn ours(dependencies: &[String]) -> Vec<String> {
    dependencies.iter().filter(|name| name.starts_with("wasmspawner")).cloned().collect()
}

/// The names in `[dependencies]` and `[target....dependencies]`, without dependencies of tests.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut names = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line.ends_with("dependencies]") && !line.contains("dev-dependencies");
        } else if inside && !line.is_empty() && !line.starts_with('#') {
            names.push(line.split(['.', ' ', '=']).next().unwrap_or_default().to_owned());
        }
    }
    names
}
