//! Server-side apply: a manager states all that it wants to be so. What it stated before and no longer does goes away;
//! what another manager holds otherwise is a conflict, unless forced (Kubernetes documentation, "Server-Side Apply").

use super::fields::{Fields, names, select, told};
use super::managed::{self, Entry};
use crate::apiserver::failure::{Cause, Failure};
use crate::apiserver::metadata::{self, Document};
use crate::apiserver::schema::{ListType, Schema, Shape, key_default};
use serde_json::Value;

/// What a manager applies.
pub(in crate::apiserver) struct Applied<'a> {
    /// All that it wants to be so, in its kind's form.
    pub(in crate::apiserver) config: &'a Document,
    pub(in crate::apiserver) manager: &'a str,
    /// Take fields from other managers instead of failing.
    pub(in crate::apiserver) force: bool,
    /// Whether it is about the status, and nothing else.
    pub(in crate::apiserver) status: bool,
}

/// What the object becomes; `live` is empty when there is none yet.
pub(in crate::apiserver) fn apply(
    live: &Document,
    applied: &Applied<'_>,
    schema: &Schema,
) -> Result<Document, Failure> {
    let Applied { config, manager, force, status } = *applied;
    let wanted = managed::ownable(config, status);
    let root = schema.root();
    let api_version = config.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let mine = Entry::new(manager, "Apply", status, api_version, Fields::of(&wanted, root));
    let mut entries = managed::read(live);
    if entries.is_empty() && !live.is_empty() {
        let fields = Fields::of(&managed::ownable(live, status), root);
        entries.push(Entry::new("before-first-apply", "Update", status, api_version, fields));
    }
    let conflicts = take(&mut entries, &mine, &wanted, live);
    if !conflicts.is_empty() && !force {
        return Err(Failure::apply_conflict(conflicts));
    }
    let mut merged = live.clone();
    merge(&mut merged, &with_head(config, wanted), root);
    own(&mut merged, &mut entries, mine);
    managed::write(&mut merged, &entries);
    Ok(merged)
}

/// Takes the fields that get another value from those who hold them, and tells from whom.
fn take(entries: &mut [Entry], mine: &Entry, wanted: &Value, live: &Document) -> Vec<Cause> {
    let live = Value::Object(live.clone());
    let mut conflicts = Vec::new();
    for entry in entries.iter_mut().filter(|entry| !entry.is_of(mine)) {
        let mut paths = Vec::new();
        let lost = disputed(&entry.fields, &mine.fields, wanted, &live, &mut Vec::new(), &mut paths);
        conflicts.extend(paths.into_iter().map(|path| conflict(entry, path)));
        entry.fields = entry.fields.without(&lost);
    }
    conflicts
}

/// Notes what the manager states now, and removes what only it stated before.
fn own(merged: &mut Document, entries: &mut Vec<Entry>, mine: Entry) {
    let Some(position) = entries.iter().position(|entry| entry.is_of(&mine)) else {
        entries.push(mine);
        return;
    };
    let before = entries.remove(position);
    let mut others = Fields::default();
    for entry in entries.iter() {
        others.union(&entry.fields);
    }
    let dropped = before.fields.without(&mine.fields).without(&others);
    let mut kept_by_anyone = others;
    kept_by_anyone.union(&mine.fields);
    let mut value = Value::Object(std::mem::take(merged));
    prune(&mut value, &dropped, &kept_by_anyone);
    if let Value::Object(document) = value {
        *merged = document;
    }
    // The same statement again is no change, not even of its time.
    entries.insert(position, if before.fields == mine.fields { before } else { mine });
}

/// What is wanted, and which object is meant.
fn with_head(config: &Document, wanted: Value) -> Document {
    let mut document = match wanted {
        Value::Object(document) => document,
        _ => Document::new(),
    };
    for field in ["apiVersion", "kind"] {
        if let Some(value) = config.get(field) {
            document.insert(field.to_owned(), value.clone());
        }
    }
    for field in ["name", "namespace", "uid", "resourceVersion", "generateName"] {
        if let Some(value) = metadata::field(config, field) {
            metadata::metadata_mut(&mut document).insert(field.to_owned(), value.clone());
        }
    }
    document
}

fn conflict(entry: &Entry, field: String) -> Cause {
    let how = match (entry.operation.as_str(), entry.subresource.as_str()) {
        ("Apply", "") => String::new(),
        (_, "") => " using Update".to_owned(),
        (_, part) => format!(" with subresource {part:?}"),
    };
    Cause {
        reason: "FieldManagerConflict",
        message: format!("conflict with {:?}{how}", entry.manager),
        field,
    }
}

/// The fields that another manager holds and that would get another value; told in `paths`.
fn disputed(
    theirs: &Fields,
    mine: &Fields,
    wanted: &Value,
    live: &Value,
    path: &mut Vec<String>,
    paths: &mut Vec<String>,
) -> Fields {
    let mut lost = Fields::default();
    if theirs.here && mine.here && theirs.below.is_empty() && mine.below.is_empty() && wanted != live {
        lost.here = true;
        paths.push(path.concat());
        return lost;
    }
    for (element, mine) in &mine.below {
        let (Some(theirs), Some(wanted), Some(live)) =
            (theirs.below.get(element), select(wanted, element), select(live, element))
        else {
            continue;
        };
        path.push(told(element));
        let below = disputed(theirs, mine, wanted, live, path, paths);
        path.pop();
        if !below.is_empty() {
            lost.below.insert(element.clone(), below);
        }
    }
    lost
}

/// Lays what is wanted over what is there.
fn merge(target: &mut Document, wanted: &Document, shape: Shape<'_>) {
    for (name, value) in wanted {
        let shape = shape.field(name);
        match (target.get_mut(name), value) {
            (Some(Value::Object(target)), Value::Object(wanted)) if !shape.is_atomic_map() => {
                merge(target, wanted, shape);
            }
            (Some(Value::Array(target)), Value::Array(wanted)) => merge_list(target, wanted, shape),
            _ => {
                target.insert(name.clone(), value.clone());
            }
        }
    }
}

fn merge_list(target: &mut Vec<Value>, wanted: &[Value], shape: Shape<'_>) {
    match shape.list_type() {
        ListType::Atomic => *target = wanted.to_vec(),
        ListType::Set => {
            for value in wanted {
                if !target.contains(value) {
                    target.push(value.clone());
                }
            }
        }
        ListType::Map(keys) => {
            for value in wanted {
                let same =
                    |existing: &Value| keys.iter().all(|key| key_of(existing, key) == key_of(value, key));
                let found = target.iter().position(same);
                match (found.map(|at| &mut target[at]), value) {
                    (Some(Value::Object(existing)), Value::Object(value)) => {
                        merge(existing, value, shape.item());
                    }
                    _ => target.push(value.clone()),
                }
            }
        }
    }
}

fn key_of(item: &Value, key: &str) -> Option<Value> {
    item.get(key).cloned().or_else(|| key_default(key).map(Value::from))
}

/// Removes the fields that nobody states any more, and what is empty without them.
fn prune(value: &mut Value, dropped: &Fields, kept: &Fields) {
    let nothing = Fields::default();
    for (element, fields) in &dropped.below {
        let kept = kept.below.get(element).unwrap_or(&nothing);
        let whole = fields.here && kept.is_empty();
        match (element.strip_prefix("f:"), &mut *value) {
            (Some(name), Value::Object(map)) => {
                if let Some(inner) = map.get_mut(name) {
                    prune(inner, fields, kept);
                    let emptied = !fields.below.is_empty() && is_empty(inner);
                    if (whole && fields.below.is_empty()) || emptied {
                        map.remove(name);
                    }
                }
            }
            (None, Value::Array(items)) => {
                if let Some(at) = items.iter().position(|item| names(element, item)) {
                    if whole {
                        items.remove(at);
                    } else {
                        prune(&mut items[at], fields, kept);
                    }
                }
            }
            _ => {}
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Applied, apply};
    use crate::apiserver::failure::Failure;
    use crate::apiserver::metadata::Document;
    use crate::apiserver::patch::track;
    use crate::apiserver::schema::Schema;
    use serde_json::{Value, json};

    fn applied(live: &Document, manager: &str, force: bool, config: &Value) -> Result<Document, Failure> {
        let config = config.as_object().unwrap();
        apply(live, &Applied { config, manager, force, status: false }, &Schema::BuiltIn)
    }

    fn without_managers(object: &Document) -> Value {
        let mut object = Value::Object(object.clone());
        object["metadata"].as_object_mut().unwrap().remove("managedFields");
        object
    }

    #[test]
    fn what_a_manager_no_longer_states_goes_away() {
        let labels = json!({"x": "1", "y": "2"});
        let first = json!({"metadata": {"name": "a", "labels": labels}, "data": {"k": "v", "l": "w"}});
        let object = applied(&Document::new(), "m", false, &first).unwrap();
        let second = json!({"metadata": {"name": "a", "labels": {"y": "2"}}, "data": {"k": "v2"}});
        let object = applied(&object, "m", false, &second).unwrap();
        assert_eq!(without_managers(&object), second);
        let third = json!({"metadata": {"name": "a"}});
        let object = applied(&object, "m", false, &third).unwrap();
        assert_eq!(without_managers(&object), third, "nothing empty stays behind");
    }

    #[test]
    fn what_another_manager_states_too_stays() {
        let object =
            applied(&Document::new(), "m", false, &json!({"metadata": {}, "data": {"k": "v"}})).unwrap();
        let both = json!({"metadata": {}, "data": {"k": "v", "o": "1"}});
        let object = applied(&object, "n", false, &both).unwrap();
        let object = applied(&object, "m", false, &json!({"metadata": {}})).unwrap();
        assert_eq!(object["data"], json!({"k": "v", "o": "1"}));
    }

    #[test]
    fn another_value_is_a_conflict_until_forced() {
        let object =
            applied(&Document::new(), "m", false, &json!({"metadata": {}, "data": {"k": "v"}})).unwrap();
        let wish = json!({"metadata": {}, "data": {"k": "w"}});
        let status = applied(&object, "n", false, &wish).unwrap_err().to_status();
        assert_eq!((status["code"].clone(), status["reason"].clone()), (json!(409), json!("Conflict")));
        let cause =
            json!({"reason": "FieldManagerConflict", "message": "conflict with \"m\"", "field": ".data.k"});
        assert_eq!(status["details"]["causes"], json!([cause]));
        let object = applied(&object, "n", true, &wish).unwrap();
        assert_eq!(object["data"], json!({"k": "w"}));
        let object = applied(&object, "n", false, &json!({"metadata": {}})).unwrap();
        assert!(object.get("data").is_none(), "the first manager has lost the field");
    }

    #[test]
    fn items_of_keyed_lists_have_owners_of_their_own() {
        let pod = |containers: Value| json!({"metadata": {}, "spec": {"containers": containers}});
        let one = json!({"name": "one", "image": "i"});
        let object = applied(&Document::new(), "m", false, &pod(json!([one]))).unwrap();
        let object = applied(&object, "n", false, &pod(json!([{"name": "two", "image": "j"}]))).unwrap();
        assert_eq!(object["spec"]["containers"].as_array().unwrap().len(), 2);
        let object = applied(&object, "n", false, &json!({"metadata": {}})).unwrap();
        assert_eq!(object["spec"]["containers"], json!([one]));
    }

    #[test]
    fn an_update_takes_ownership_of_what_it_changes() {
        let stated = json!({"metadata": {}, "data": {"k": "v", "l": "w"}});
        let object = applied(&Document::new(), "m", false, &stated).unwrap();
        let mut updated = object.clone();
        updated["data"]["k"] = json!("edited");
        track(&mut updated, &object, &Schema::BuiltIn, "editor", false);
        let status = applied(&updated, "m", false, &stated).unwrap_err().to_status();
        assert!(status["message"].as_str().unwrap().contains("\"editor\" using Update"), "{status}");
    }

    #[test]
    fn the_first_apply_finds_what_others_made_before() {
        let live = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
        let live = live.as_object().unwrap();
        assert!(applied(live, "m", false, &json!({"metadata": {}, "data": {"k": "other"}})).is_err());
        assert!(applied(live, "m", false, &json!({"metadata": {}, "data": {"k": "v"}})).is_ok());
    }
}
