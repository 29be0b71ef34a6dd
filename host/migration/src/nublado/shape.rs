//! The forms of values that Nublado reads.

use serde_json::{Map, Value};

use super::reader::Reader;
use crate::values_file::below;

/// The form of a value. Keys that a map does not have are reported, and left out.
pub(super) enum Shape {
    /// A text, a number, true or false.
    Scalar,
    /// Any names with texts, such as labels.
    Texts,
    /// A list of texts.
    List,
    /// A list of maps with these keys.
    Maps(&'static [(&'static str, Shape)]),
    /// A map with these keys.
    Map(&'static [(&'static str, Shape)]),
    /// Anything: Kubernetes reads it.
    Free,
}

use Shape::{Free, List, Map as Keys, Maps, Scalar, Texts};

const AMOUNTS: Shape = Keys(&[("cpu", Scalar), ("memory", Scalar)]);

const IMAGE_KEYS: &[(&str, Shape)] = &[("repository", Scalar), ("tag", Scalar), ("pullPolicy", Scalar)];

pub(super) const MOUNTS: Shape =
    Maps(&[("containerPath", Scalar), ("subPath", Scalar), ("readOnly", Scalar), ("volumeName", Scalar)]);

pub(super) const VOLUMES: Shape = Maps(&[
    ("name", Scalar),
    ("containerPath", Scalar),
    ("subPath", Scalar),
    ("readOnly", Scalar),
    (
        "source",
        Keys(&[
            ("type", Scalar),
            ("server", Scalar),
            ("serverPath", Scalar),
            ("readOnly", Scalar),
            ("path", Scalar),
            ("accessModes", List),
            ("storageClassName", Scalar),
            ("resources", Keys(&[("requests", Texts)])),
            ("medium", Scalar),
            ("size", Scalar),
        ]),
    ),
]);

pub(super) const SIZES: Shape = Maps(&[
    ("size", Scalar),
    ("cpu", Scalar),
    ("memory", Scalar),
    ("resources", Keys(&[("limits", AMOUNTS), ("requests", AMOUNTS)])),
]);

pub(super) const INIT_CONTAINERS: Shape = Maps(&[
    ("name", Scalar),
    ("image", Keys(IMAGE_KEYS)),
    ("command", List),
    ("privileged", Scalar),
    ("volumeMounts", MOUNTS),
]);

pub(super) const SECRETS: Shape =
    Maps(&[("secretName", Scalar), ("secretKey", Scalar), ("env", Scalar), ("path", Scalar)]);

pub(super) const TOLERATIONS: Shape = Maps(&[
    ("key", Scalar),
    ("operator", Scalar),
    ("value", Scalar),
    ("effect", Scalar),
    ("tolerationSeconds", Scalar),
]);

pub(super) const SOURCE: Shape = Keys(&[
    ("type", Scalar),
    ("registry", Scalar),
    ("repository", Scalar),
    ("location", Scalar),
    ("projectId", Scalar),
    ("image", Scalar),
]);

pub(super) const FILTER: Shape = Keys(&[
    ("number", Scalar),
    ("age", Scalar),
    ("cutoffDate", Scalar),
    ("cutoffVersion", Scalar),
    ("cutoffBuild", Scalar),
]);

pub(super) const NSS: Shape = Keys(&[("basePasswd", Scalar), ("baseGroup", Scalar)]);

/// Carries a key over to the same key of the policy, as far as it has the form. Returns what was carried over.
pub(super) fn to_policy(
    reader: &mut Reader<'_>,
    path: &str,
    key: &str,
    value: &Value,
    shape: &Shape,
) -> Option<Value> {
    let value = fit(reader, path, value, shape)?;
    reader.carried(path, &format!("policies[rubin].config.{key}"), "");
    reader.set_policy(key, value.clone());
    Some(value)
}

/// Returns the part of a value that has the form, and reports the rest.
pub(super) fn fit(reader: &mut Reader<'_>, path: &str, value: &Value, shape: &Shape) -> Option<Value> {
    match (shape, value) {
        (Free, _) | (Scalar, Value::String(_) | Value::Number(_) | Value::Bool(_)) => Some(value.clone()),
        // Items of lists may have keys with `null`, which is as without the key.
        (_, Value::Null) => None,
        (Texts, Value::Object(entries)) => {
            let text = |(key, value): (&String, &Value)| {
                let text = crate::becomes::plain_text(value);
                if value.is_object() || value.is_array() {
                    reader.other_form(&below(path, key));
                    return None;
                }
                Some((key.clone(), Value::from(text)))
            };
            Some(entries.iter().filter_map(text).collect::<Map<_, _>>().into())
        }
        (List, Value::Array(items)) if items.iter().all(Value::is_string) => Some(value.clone()),
        (Keys(keys), Value::Object(entries)) => Some(known(reader, path, entries, keys)),
        (Maps(keys), Value::Array(items)) => {
            let item = |(at, item): (usize, &Value)| {
                let path = format!("{path}[{at}]");
                if let Value::Object(entries) = item {
                    return Some(known(reader, &path, entries, keys));
                }
                reader.other_form(&path);
                None
            };
            Some(items.iter().enumerate().filter_map(item).collect())
        }
        _ => {
            reader.other_form(path);
            None
        }
    }
}

fn known(reader: &mut Reader<'_>, path: &str, entries: &Map<String, Value>, keys: &[(&str, Shape)]) -> Value {
    let mut kept = Map::new();
    for (key, value) in entries {
        let path = below(path, key);
        match keys.iter().find(|(known, _)| known == key) {
            Some((_, shape)) => {
                kept.extend(fit(reader, &path, value, shape).map(|value| (key.clone(), value)));
            }
            None => reader.unknown(&path),
        }
    }
    kept.into()
}
