//! Tests that `deploy/wasmspawner.example.yaml` is valid and complete, and that every value in it is the default.

use serde_json::{Value, json};
use wasmspawner_core::config::auth::AuthConfig;
use wasmspawner_core::config::{ConfigFile, NamespaceReclaim};

const EXAMPLE: &str = include_str!("../../../../deploy/wasmspawner.example.yaml");

/// Returns the example with its commented-out parts (`#:`) switched on.
fn everything() -> String {
    EXAMPLE
        .replace("\npolicies: []\n", "\npolicies:\n")
        .replace("\n  repositories: []\n", "\n  repositories:\n")
        .replace("\n  nodes: null\n", "\n  nodes:\n")
        .replace("\n  prepull: null\n", "\n  prepull:\n")
        .replace("\n  modes: [jupyterhub]\n", "\n  modes: [static, oidc, jupyterhub, headers]\n")
        .lines()
        .map(|line| line.strip_prefix("#:").unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n")
}

fn tree(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).unwrap()
}

fn file(yaml: &str) -> ConfigFile {
    serde_saphyr::from_str(yaml).unwrap_or_else(|error| panic!("{error}"))
}

/// Parses and serializes the configuration in `yaml`, so that defaults are filled in.
fn read(yaml: &str) -> Value {
    serde_json::to_value(file(yaml)).unwrap()
}

#[test]
fn the_example_is_valid_as_it_is_and_with_everything_switched_on() {
    // The one-machine cluster pulls no images, and has no workloads and no Services. Namespaces that the operator has
    // made are only for the mode in which namespaces stay.
    let (mut on_one_machine, mut on_a_kubernetes) = (file(&everything()), file(&everything()));
    on_one_machine.kubernetes.existing_namespaces.clear();
    on_a_kubernetes.kubernetes.namespaces = NamespaceReclaim::Retain;
    on_one_machine.images.prepull = None;
    on_one_machine.workloads.namespaces.clear();
    on_one_machine.lab.service = None;
    on_a_kubernetes.embedded = None;
    for file in [file(EXAMPLE), on_one_machine, on_a_kubernetes] {
        if let Err(problems) = file.validate() {
            panic!("{problems:#?}");
        }
    }
}

#[test]
fn every_value_is_the_default() {
    let defaults = serde_json::to_value(ConfigFile::default()).unwrap();
    let example = read(EXAMPLE);
    for (section, value) in defaults.as_object().unwrap() {
        assert_eq!(&example[section], value, "{section}");
    }
    let everything = read(&everything());
    let embedded = serde_json::to_value(wasmspawner_core::config::EmbeddedConfig::default()).unwrap();
    assert_eq!(everything["embedded"], embedded);
    let forgotten = serde_json::to_value(wasmspawner_core::config::ForgottenConfig::default()).unwrap();
    assert_eq!(everything["hub"]["forgotten"], forgotten);
    let policy = read("policies: [{name: default, path: policies/default.wasm}]");
    assert_eq!(everything["policies"], policy["policies"]);
}

#[test]
fn every_default_of_authentication_is_the_default() {
    let least = json!({
        "modes": ["static", "oidc", "jupyterhub", "headers"],
        "jupyterhub": { "api_url": "http://hub:8081/hub/api" },
        "headers": { "url": "http://gafaelfawr.gafaelfawr:8080", "trusted_peers": ["192.0.2.10", "192.0.2.11"] },
        "oidc": {
            "issuer": "https://sso.example.org/realms/lab",
            "audience": "wasmspawner",
            "jwks_url": "https://sso.example.org/realms/lab/protocol/openid-connect/certs",
            "uid_claim": "uid_number",
            "gid_claim": "gid_number",
        },
        "static": { "tokens_file": "/etc/wasmspawner/tokens.yaml" },
        "identities": { "default": { "uid": 1000, "gid": 100, "groups": [{ "name": "users", "id": 100 }] } },
    });
    let least: AuthConfig = serde_json::from_value(least).unwrap();
    assert_eq!(read(&everything())["auth"], serde_json::to_value(least).unwrap());
}

/// The tests above do not detect a key that the example leaves out, because its default is filled in.
#[test]
fn no_key_is_missing() {
    let schema = serde_json::to_value(schemars::schema_for!(ConfigFile)).unwrap();
    let mut missing = Vec::new();
    find_missing("", &schema, &schema, &tree(&everything()), &mut missing);
    assert_eq!(missing, [""; 0]);
}

/// Adds the paths of all keys that the schema allows in `written` and that are missing there.
fn find_missing(path: &str, schema: &Value, root: &Value, written: &Value, missing: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let schema = root.pointer(name.trim_start_matches('#')).unwrap();
        return find_missing(path, schema, root, written, missing);
    }
    for alternative in ["anyOf", "allOf"].iter().filter_map(|word| schema[word].as_array()).flatten() {
        find_missing(path, alternative, root, written, missing);
    }
    if let (Some(known), Some(written)) = (schema["properties"].as_object(), written.as_object()) {
        for (key, schema) in known {
            let path = format!("{path}/{key}");
            match written.get(key) {
                Some(value) => find_missing(&path, schema, root, value, missing),
                None => missing.push(path),
            }
        }
    }
    for (index, value) in written.as_array().into_iter().flatten().enumerate() {
        find_missing(&format!("{path}/{index}"), &schema["items"], root, value, missing);
    }
}
