//! Removes credentials, and the texts that users typed, from the contents of a bundle.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use wasmspawner_outgoing as outgoing;

const REMOVED: &str = "(removed)";

/// The length of the shortest texts that are searched for. Shorter ones occur everywhere.
const MIN_SEARCHED_BYTES: usize = 4;

/// The settings whose texts are shown, with everything below them. `*` stands for each key or item. Any other text or
/// number may be, or contain, a credential, including one in a setting that is added later.
const SHOWN: [&[&str]; 49] = [
    &["auth", "modes"],
    &["auth", "headers"],
    &["auth", "jupyterhub"],
    &["auth", "oidc"],
    &["auth", "static", "tokens_file"],
    &["blueprints", "folder"],
    &["blueprints", "providers"],
    &["dask"],
    &["embedded", "keep_labs"],
    &["embedded", "listen"],
    &["embedded", "runtime"],
    &["embedded", "simulated"],
    &["environments", "clusters", "*", "lab_url"],
    &["environments", "default_class"],
    &["form"],
    &["history"],
    &["http"],
    &["hub"],
    &["images"],
    &["kubernetes"],
    &["lab", "argo_cd"],
    &["lab", "container"],
    &["lab", "credential_env"],
    &["lab", "image"],
    &["lab", "image_pull_policy"],
    &["lab", "network_policy"],
    &["lab", "port"],
    &["lab", "priority_class_name"],
    &["lab", "readiness_probe"],
    &["lab", "reserved_env"],
    &["lab", "runtime_class_name"],
    &["lab", "scheduler_name"],
    &["lab", "secrets"],
    &["lab", "secrets_path"],
    &["lab", "service"],
    &["lab", "working_dir"],
    &["limits"],
    &["names"],
    &["policies", "*", "digest"],
    &["policies", "*", "grants"],
    &["policies", "*", "limits"],
    &["policies", "*", "name"],
    &["policies", "*", "oci"],
    &["policies", "*", "on_failure"],
    &["policies", "*", "path"],
    &["registries"],
    &["state_dir"],
    &["telemetry"],
    &["workloads"],
];

/// The fields of a lab that are included besides the names of its options and variables.
const OF_LAB: [&str; 15] = [
    "username",
    "server",
    "status",
    "pod",
    "uid",
    "gid",
    "quotas",
    "stage",
    "reason",
    "message",
    "progress",
    "job_id",
    "image",
    "started_at",
    "restarts",
];

/// The known texts that must not be in the bundle.
#[derive(Default)]
pub(super) struct Redaction(BTreeSet<String>);

impl Redaction {
    /// Remembers a text, which is then removed wherever it occurs.
    pub(super) fn add(&mut self, secret: &str) {
        let secret = secret.trim();
        if secret.len() >= MIN_SEARCHED_BYTES {
            self.0.insert(secret.to_owned());
        }
    }

    /// Returns a lab without the values of its options and variables, and remembers the values of the options.
    pub(super) fn lab(&mut self, lab: &Value) -> Value {
        let mut kept: Map<String, Value> =
            OF_LAB.iter().filter_map(|field| Some(((*field).to_owned(), lab.get(field)?.clone()))).collect();
        for field in ["options", "env"] {
            let values = lab.get(field).and_then(Value::as_object).cloned().unwrap_or_default();
            if field == "options" {
                values.values().for_each(|value| self.add_all(value));
            }
            kept.insert(format!("names_of_{field}"), values.keys().cloned().collect());
        }
        Value::Object(kept)
    }

    fn add_all(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add(text),
            Value::Array(items) => items.iter().for_each(|item| self.add_all(item)),
            Value::Object(fields) => fields.values().for_each(|field| self.add_all(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Removes the remembered texts, and everything that looks like a credential.
    pub(super) fn clean(&self, text: &str) -> String {
        let mut text = text.to_owned();
        // The longest first, because one may be a part of another.
        let mut known: Vec<&String> = self.0.iter().collect();
        known.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        for secret in known {
            text = text.replace(secret.as_str(), REMOVED);
        }
        without_credentials(&text)
    }
}

/// Removes all values from a configuration except those that are known to be harmless. All its keys stay.
pub(super) fn configuration(mut config: Value) -> Value {
    // The keys are the users' names.
    if let Some(identities) = config.pointer_mut("/auth/identities") {
        *identities = REMOVED.into();
    }
    show(&mut config, &SHOWN);
    config
}

/// Removes the texts and numbers that are not below one of the paths.
fn show(value: &mut Value, paths: &[&[&str]]) {
    if paths.iter().any(|path| path.is_empty()) {
        return without_parts_of_urls(value);
    }
    let below = |key: &str| -> Vec<&[&str]> {
        let goes_on = |path: &&[&str]| matches!(path, [first, ..] if *first == key || *first == "*");
        paths.iter().copied().filter(goes_on).map(|path| &path[1..]).collect()
    };
    match value {
        Value::String(_) | Value::Number(_) => *value = REMOVED.into(),
        Value::Array(items) => items.iter_mut().for_each(|item| show(item, &below("*"))),
        Value::Object(fields) => fields.iter_mut().for_each(|(key, field)| show(field, &below(key))),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Removes the parts of URLs that may be secret.
fn without_parts_of_urls(value: &mut Value) {
    match value {
        Value::String(text) if text.contains("://") => *text = outgoing::shown(text),
        Value::Array(items) => items.iter_mut().for_each(without_parts_of_urls),
        Value::Object(fields) => fields.values_mut().for_each(without_parts_of_urls),
        _ => {}
    }
}

/// Replaces words that look like credentials: those that follow `Bearer` or `token`, tokens of well-known forms, and
/// URLs with a user or a password.
fn without_credentials(text: &str) -> String {
    let ends_word = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | ';' | '<' | '>' | '\\');
    let mut cleaned = String::with_capacity(text.len());
    let mut before = String::new();
    for piece in text.split_inclusive(ends_word) {
        let word = piece.trim_end_matches(ends_word);
        let after_scheme = matches!(before.as_str(), "bearer" | "token" | "basic") && word.len() >= 12;
        let known = ["eyJ", "gt-", "ghp_", "glpat-", "AKIA", "xox"].iter().any(|start| word.contains(start))
            && word.len() >= 20;
        let url = word.split_once("://").is_some_and(|(_, rest)| {
            rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
        });
        if after_scheme || known || url {
            cleaned.push_str(REMOVED);
            cleaned.push_str(&piece[word.len()..]);
        } else {
            cleaned.push_str(piece);
        }
        if !word.is_empty() {
            before = word.trim_end_matches(':').to_lowercase();
        }
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_configuration_keeps_its_settings_and_loses_its_secrets() {
        let config = json!({
            "auth": { "modes": ["static"], "static": { "tokens_file": "/t" },
                      "identities": { "users": { "ada": { "email": "marker@x" } } } },
            "lab": { "port": 8888, "env": { "SITE_PASSWORD": "marker" }, "args": ["--token=marker"] },
            "policies": [{
                "name": "site",
                "path": "/site.wasm",
                "config": { "key": "marker", "nested": [{ "pin": 4711 }] },
                "candidate": { "path": "/next.wasm", "config": { "key": "marker" } },
                "data": { "people": { "url": "https://ada:marker@host/x" } },
            }],
            "blueprints": {
                "providers": { "repository": { "url": "https://u:marker@git/{repository}?private_token=marker" } },
                "site": { "course": { "env": { "PW": "marker" }, "options": { "pin": 4711 } } },
            },
            "environments": { "clusters": { "far": { "route": { "annotations": { "auth": "marker" } } } } },
            "hub": { "api_url": "http://hub:8081/hub/api" },
            "future": { "anything": "marker", "pin": 4711, "enabled": true },
        });
        let cleaned = configuration(config);
        let text = cleaned.to_string();
        assert!(!text.contains("marker") && !text.contains("4711"), "{text}");
        assert_eq!(cleaned["lab"]["port"], 8888);
        assert_eq!(cleaned["auth"]["static"]["tokens_file"], "/t");
        assert_eq!(cleaned["policies"][0]["config"]["nested"][0]["pin"], REMOVED);
        assert_eq!(cleaned["policies"][0]["candidate"]["config"]["key"], REMOVED);
        assert_eq!(cleaned["policies"][0]["path"], "/site.wasm");
        assert_eq!(cleaned["blueprints"]["providers"]["repository"]["url"], "https://git/{repository}?...");
        assert_eq!(cleaned["hub"]["api_url"], "http://hub:8081/hub/api");
        assert_eq!(cleaned["future"]["enabled"], true);
    }

    #[test]
    fn what_a_user_typed_is_removed_wherever_it_occurs() {
        let mut redaction = Redaction::default();
        let lab = redaction.lab(&json!({
            "username": "ada", "status": "failed", "message": "no image hunter22",
            "options": { "image": "hunter22", "many": ["hunter22-long"], "size": "xs" },
            "env": { "A": "something" },
        }));
        assert_eq!(lab["names_of_options"], json!(["image", "many", "size"]));
        let text = redaction.clean(&lab.to_string());
        assert!(!text.contains("hunter22") && !text.contains("something"), "{text}");
        assert!(text.contains(r#""status":"failed""#), "{text}");
        assert_eq!(redaction.clean("hunter22-long"), REMOVED);
    }

    #[test]
    fn words_that_look_like_credentials_are_removed() {
        let redaction = Redaction::default();
        for (text, expected) in [
            ("Authorization: Bearer 0123456789abcdef, next", "Authorization: Bearer (removed), next"),
            ("{\"a\":\"eyJhbGciOiJub25lIn0.e30.x\"}", "{\"a\":\"(removed)\"}"),
            ("from https://ada:pw@host/x now", "from (removed) now"),
            ("ada@example.org asks https://host/a@b", "ada@example.org asks https://host/a@b"),
            ("the token is wrong", "the token is wrong"),
        ] {
            assert_eq!(redaction.clean(text), expected);
        }
    }
}
