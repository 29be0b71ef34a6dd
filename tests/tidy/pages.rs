//! Pages say what is so: hooks of policies, policies of images, reasons of conditions, what can be installed.

use std::collections::BTreeSet;

use super::assert_rule;
use super::tree::{between, read, texts};

/// The rest of the names of packages and modules for Python.
const OF_PYTHON: [&str; 2] = ["policy", "sdk"];

#[test]
fn pages_of_policies_list_the_hooks_that_they_export() {
    let mut offences = Vec::new();
    for policy in ["default", "rubin"] {
        let hooks = exported(policy);
        let page = read(&format!("plugins/{policy}/README.md"));
        let listed: BTreeSet<String> =
            quoted(between(&page, "It exports\n", ":")).into_iter().map(str::to_owned).collect();
        if listed != hooks {
            offences.push(format!("plugins/{policy}/README.md: {listed:?}; exported: {hooks:?}"));
        }
    }
    assert_rule("These pages name other hooks than their policies export:", &offences);
}

#[test]
fn the_list_of_policies_has_the_hooks_that_they_export() {
    let page = read("plugins/README.md");
    let rows: Vec<&str> =
        between(&page, "| policy | what it decides | hooks |\n", "\n\n").lines().skip(1).collect();
    assert!(rows.len() > 8, "{rows:?}");
    let offences: Vec<String> = rows
        .into_iter()
        .filter(|row| {
            let name = quoted(row)[0];
            let (_, hooks) = row.trim_end_matches(" |").rsplit_once("| ").unwrap();
            let listed: BTreeSet<String> = hooks.split(", ").map(str::to_owned).collect();
            listed != exported(name)
        })
        .map(str::to_owned)
        .collect();
    assert_rule("plugins/README.md lists other hooks than these policies export:", &offences);
}

/// The hooks that a policy exports.
fn exported(policy: &str) -> BTreeSet<String> {
    let code = read(&format!("plugins/{policy}/src/lib.rs"));
    let (_, hooks) = between(&code, "\nexport!(", ");").split_once(": ").unwrap();
    hooks.split(", ").map(|hook| hook.replace('_', "-")).collect()
}

#[test]
fn pages_name_metrics_and_alerts_that_exist() {
    let metrics = read("deploy/monitoring/README.md");
    let alerts = read("deploy/monitoring/alerts.yaml");
    let mut found = 0;
    let mut offences = Vec::new();
    for page in texts().into_iter().filter(|file| file.is(".md") && !file.is("CHANGELOG.md")) {
        for name in quoted(&page.text) {
            let is_word = name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
            let exists = match name.split_once('_') {
                Some(("wasmspawner", rest)) if is_word && !OF_PYTHON.contains(&rest) => {
                    let name = ["_bucket", "_sum", "_count"]
                        .iter()
                        .find_map(|end| name.strip_suffix(end))
                        .unwrap_or(name);
                    metrics.contains(&format!("\n| `{name}` |"))
                }
                None if is_word && name.starts_with("Wasmspawner") => {
                    alerts.contains(&format!("- alert: {name}\n"))
                }
                _ => continue,
            };
            found += 1;
            if !exists {
                offences.push(format!("{}: {name}", page.path));
            }
        }
    }
    assert!(found > 20, "{found} names");
    assert_rule("These pages name metrics or alerts that do not exist:", &offences);
}

#[test]
fn the_page_lists_the_policies_of_the_images() {
    let local = read("deploy/local/toolchain.py");
    let policies = between(&local, "\nPOLICIES = (", ")").split('"').skip(1).step_by(2);
    let page = read("deploy/README.md");
    let in_image = between(&page, "and the policies `", "in\n`/usr/share");
    let as_artifacts = between(&page, "In `policy-", "they are artifacts");
    let offences: Vec<String> = policies
        .filter(|policy| {
            let name = policy.trim_start_matches("policy-");
            !format!("`{in_image}").contains(&format!("`{name}`"))
                || !format!("`policy-{as_artifacts}").contains(&format!("`{policy}`"))
        })
        .map(str::to_owned)
        .collect();
    assert_rule("deploy/README.md does not list these policies of the images:", &offences);
}

#[test]
fn reasons_of_environments_on_the_page_are_in_the_code() {
    let page = read("deploy/ENVIRONMENTS.md");
    let rows = between(&page, "| reason | at | what to do |\n", "\n\n").lines().skip(1);
    let reasons: Vec<&str> = rows.filter_map(|row| quoted(row).first().copied()).collect();
    assert!(reasons.len() > 8, "{reasons:?}");
    // A reason of Kubernetes.
    let of_this_code = reasons.iter().filter(|reason| **reason != "Forbidden");
    let sources: Vec<_> = texts().into_iter().filter(|file| file.path.starts_with("host/")).collect();
    let is_in_code = |reason: &str| sources.iter().any(|file| file.text.contains(&format!("\"{reason}\"")));
    let offences: Vec<String> =
        of_this_code.filter(|reason| !is_in_code(reason)).map(|reason| (*reason).to_owned()).collect();
    assert_rule("deploy/ENVIRONMENTS.md lists reasons that no condition has:", &offences);
}

#[test]
fn nobody_is_told_to_install_what_is_not_published() {
    let named = [
        "pip install wasmspawner",
        "pip install 'wasmspawner",
        "npm install wasmspawner",
        "cargo install wasmspawner",
    ];
    let offences: Vec<String> = texts()
        .iter()
        .filter(|file| {
            file.path != "tests/tidy/pages.rs" && named.iter().any(|name| file.text.contains(name))
        })
        .map(|file| file.path.clone())
        .collect();
    assert_rule(
        "No registry has a package of this repository; name the folder that it is built from:",
        &offences,
    );
}

/// The texts between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}
