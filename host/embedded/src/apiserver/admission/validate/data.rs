//! Rules of `ConfigMap` and `Secret`. That secrets are base64 is seen to when they are decoded.

use crate::apiserver::admission::names;
use crate::apiserver::failure::Cause;
use crate::apiserver::metadata::{self, Document};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// Sum of all values, in bytes.
const LIMIT: usize = 1024 * 1024;

fn entries<'a>(object: &'a Document, field: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object.get(field).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

pub(super) fn config_map(object: &Document) -> Vec<Cause> {
    let mut causes = keys_and_size(object, &["data", "binaryData"]);
    for (key, _) in entries(object, "binaryData") {
        if entries(object, "data").any(|(other, _)| other == key) {
            causes.push(Cause::invalid(
                format!("data[{key}]"),
                key,
                "duplicate of key present in binaryData",
            ));
        }
    }
    causes
}

pub(super) fn secret(object: &Document) -> Vec<Cause> {
    let mut causes = keys_and_size(object, &["data"]);
    let required: &[&str] = match object.get("type").and_then(Value::as_str).unwrap_or_default() {
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/service-account-token" => {
            let account = metadata::field(object, "annotations")
                .and_then(|annotations| annotations.get("kubernetes.io/service-account.name"));
            if account.is_none() {
                let field = "metadata.annotations[kubernetes.io/service-account.name]";
                causes.push(Cause::required(field, ""));
            }
            &[]
        }
        _ => &[],
    };
    for key in required {
        let value = object.get("data").and_then(|data| data.get(key)).and_then(Value::as_str);
        match value {
            None => causes.push(Cause::required(format!("data[{key}]"), "")),
            Some(value) if key.starts_with('.') && !is_json(value) => {
                causes.push(Cause::invalid(
                    format!("data[{key}]"),
                    "<secret contents redacted>",
                    "is not JSON",
                ));
            }
            Some(_) => {}
        }
    }
    causes
}

fn is_json(encoded: &str) -> bool {
    STANDARD.decode(encoded).is_ok_and(|text| serde_json::from_slice::<serde::de::IgnoredAny>(&text).is_ok())
}

fn keys_and_size(object: &Document, fields: &[&str]) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut size = 0;
    for &field in fields {
        for (key, value) in entries(object, field) {
            let length = value.as_str().map_or(0, str::len);
            size += if field == "data" && !is_encoded(object) { length } else { length / 4 * 3 };
            if let Some(why) = names::data_key_error(key) {
                causes.push(Cause::invalid(format!("{field}[{key}]"), key, &why));
            }
        }
    }
    if size > LIMIT {
        causes.push(Cause::too_long(fields[0], LIMIT));
    }
    causes
}

fn is_encoded(object: &Document) -> bool {
    object.get("kind").and_then(Value::as_str) == Some("Secret")
}

/// What was made immutable stays so, as does the type of a secret.
pub(super) fn of_update(new: &Document, old: &Document) -> Vec<Cause> {
    let mut causes = Vec::new();
    if old.get("immutable").and_then(Value::as_bool) == Some(true) {
        for field in ["data", "binaryData", "immutable"] {
            if new.get(field) != old.get(field) {
                causes.push(Cause::forbidden(field, "field is immutable when `immutable` is set"));
            }
        }
    }
    if old.get("type").is_some() && new.get("type") != old.get("type") {
        let given = new.get("type").and_then(Value::as_str).unwrap_or_default();
        causes.push(Cause::invalid("type", given, "field is immutable"));
    }
    causes
}
