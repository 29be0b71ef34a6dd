//! The lists of the policies' hooks, which are in several languages, name the interfaces of the contract.

use std::collections::BTreeSet;

use crate::tree::{between, read};

/// The interfaces of a policy that are not hooks: nobody can require them, and each SDK treats them in its own way.
const NO_HOOKS: [&str; 2] = ["config", "prepare"];

/// Returns the name of a hook in an item of a list.
type Name = fn(&str) -> Option<String>;

/// Each list: its file, the text before it, the text after it, and the name in one of its items.
const LISTS: [(&str, &str, &str, Name); 5] = [
    ("host/core/src/config/policies.rs", "impl HookName {", "\n}\n", quoted),
    ("host/policies/src/contract/hooks/mod.rs", "\nexports! {", "\n}\n", quoted),
    ("sdk/rust/src/component.rs", "\nimplements!(", ");", after_colon),
    ("sdk/python-policy/src/wasmspawner_policy/policy.py", "\nHOOKS = {", "}", last_quoted),
    ("sdk/javascript/src/policy.js", "export const HOOKS = {", "}", last_quoted),
];

#[test]
fn every_list_of_hooks_has_those_of_the_contract() {
    let contract = read("wit/policy.wit");
    let hooks: BTreeSet<String> = between(&contract, "world full-policy {", "}")
        .split(';')
        .filter_map(|item| item.trim().strip_prefix("export "))
        .filter(|name| !NO_HOOKS.contains(name))
        .map(str::to_owned)
        .collect();
    assert!(hooks.len() >= 8, "{hooks:?}");
    for (path, begin, end, name) in LISTS {
        let file = read(path);
        let listed: BTreeSet<String> = between(&file, begin, end)
            .split([',', '\n'])
            .filter_map(name)
            .filter(|name| !NO_HOOKS.contains(&name.as_str()))
            .collect();
        assert_eq!(listed, hooks, "left: {path}; right: the world `full-policy` in wit/policy.wit");
    }
}

fn quoted(item: &str) -> Option<String> {
    item.split('"').nth(1).map(str::to_owned)
}

fn last_quoted(item: &str) -> Option<String> {
    item.split(['"', '\'']).rev().nth(1).map(str::to_owned)
}

fn after_colon(item: &str) -> Option<String> {
    item.split_once(": ").map(|(_, name)| name.trim().replace('_', "-"))
}
