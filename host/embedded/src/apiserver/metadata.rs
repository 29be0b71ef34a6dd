//! Access to `metadata` of an object whose kind is only known at run time.

use serde_json::{Map, Value, json};

/// An object as it is stored and patched: its top-level members.
pub(super) type Document = Map<String, Value>;

/// Returns the member `name` of `parent` as an object. Replaces it with an empty object if it is missing or has another
/// type.
pub(super) fn member<'a>(parent: &'a mut Document, name: &str) -> &'a mut Document {
    let slot = parent.entry(name).or_insert(Value::Null);
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    match slot {
        Value::Object(map) => map,
        _ => unreachable!("just made an object"),
    }
}

pub(super) fn metadata_mut(object: &mut Document) -> &mut Document {
    member(object, "metadata")
}

pub(super) fn field<'a>(object: &'a Document, name: &str) -> Option<&'a Value> {
    object.get("metadata")?.get(name)
}

/// Returns a text of `metadata`, `""` if it is not set.
pub(super) fn text<'a>(object: &'a Document, name: &str) -> &'a str {
    field(object, name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns `metadata.name`, `""` if it is not set.
pub(super) fn name(object: &Document) -> &str {
    text(object, "name")
}

/// Returns `metadata.namespace`, `""` for cluster-wide objects.
pub(super) fn namespace(object: &Document) -> &str {
    text(object, "namespace")
}

pub(super) fn uid(object: &Document) -> &str {
    text(object, "uid")
}

/// True if the deletion has begun.
pub(super) fn is_deleting(object: &Document) -> bool {
    !text(object, "deletionTimestamp").is_empty()
}

/// Returns the grace period of a deleted object in seconds, as of the beginning of its deletion; 0 if it need not wait.
pub(super) fn grace(object: &Document) -> i64 {
    field(object, "deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0)
}

pub(super) fn finalizers(object: &Document) -> impl Iterator<Item = &str> {
    field(object, "finalizers").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Returns the uids of the object's owners.
pub(super) fn owner_uids(object: &Document) -> impl Iterator<Item = &str> {
    field(object, "ownerReferences")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|owner| owner.get("uid").and_then(Value::as_str))
}

/// Returns the current time in Kubernetes' format: UTC, whole seconds.
pub(super) fn now() -> String {
    stamp(jiff::Timestamp::now())
}

pub(super) fn stamp(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Marks the object as being deleted, `grace` seconds from now.
pub(super) fn mark_deleting(object: &mut Document, grace: i64) {
    let until = jiff::Timestamp::now()
        .checked_add(jiff::SignedDuration::from_secs(grace))
        .unwrap_or(jiff::Timestamp::MAX);
    let metadata = metadata_mut(object);
    metadata.insert("deletionTimestamp".to_owned(), json!(stamp(until)));
    metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(grace));
    bump_generation(object);
}

/// Increments `metadata.generation` after a change of the object's desired state, if the object has a generation.
pub(super) fn bump_generation(object: &mut Document) {
    if let Some(generation) = field(object, "generation").and_then(Value::as_i64) {
        metadata_mut(object).insert("generation".to_owned(), json!(generation.saturating_add(1)));
    }
}

/// Returns the value at a path like `/status/phase`.
pub(super) fn at<'a>(object: &'a Document, path: &str) -> Option<&'a Value> {
    let mut steps = path.trim_start_matches('/').split('/');
    let first = object.get(steps.next()?)?;
    steps.try_fold(first, |value, step| value.get(step))
}
