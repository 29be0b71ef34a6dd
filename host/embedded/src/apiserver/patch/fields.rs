//! Sets of fields, as `managedFields` writes them (`FieldsV1`): `f:name` is a member of an object, `k:{..}` an item of
//! a list by its keys, `v:..` an item by its value.

use crate::apiserver::metadata::Document;
use crate::apiserver::schema::{ListType, Shape, key_default};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A set of fields of one document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    /// Whether this very field is in the set, beside what is below it.
    pub(super) here: bool,
    pub(super) below: BTreeMap<String, Fields>,
}

impl Fields {
    fn leaf() -> Self {
        Self { here: true, below: BTreeMap::new() }
    }

    /// The fields that a value states.
    pub(super) fn of(value: &Value, shape: Shape<'_>) -> Self {
        Self::changed(None, value, shape)
    }

    /// The fields that `new` states and `old` has not, or not so.
    pub(super) fn changed(old: Option<&Value>, new: &Value, shape: Shape<'_>) -> Self {
        if old == Some(new) {
            return Self::default();
        }
        let mut set = Self::default();
        match new {
            Value::Object(map) if !map.is_empty() && !shape.is_atomic_map() => {
                for (name, value) in map {
                    let fields = Self::changed(old.and_then(|o| o.get(name)), value, shape.field(name));
                    set.add(format!("f:{name}"), fields);
                }
            }
            Value::Array(items) if !items.is_empty() => match shape.list_type() {
                ListType::Atomic => set.here = true,
                ListType::Set => {
                    let had = |item| old.and_then(Value::as_array).is_some_and(|old| old.contains(item));
                    for item in items.iter().filter(|item| !had(item)) {
                        set.add(format!("v:{item}"), Self::leaf());
                    }
                }
                ListType::Map(keys) => {
                    for item in items {
                        let element = key_element(item, &keys);
                        let before = old.and_then(|old| select(old, &element));
                        let mut fields = Self::changed(before, item, shape.item());
                        fields.here = before.is_none();
                        set.add(element, fields);
                    }
                }
            },
            _ => set.here = true,
        }
        set
    }

    fn add(&mut self, element: String, fields: Self) {
        if !fields.is_empty() {
            self.below.insert(element, fields);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.here && self.below.is_empty()
    }

    /// Adds the other set.
    pub(super) fn union(&mut self, other: &Self) {
        self.here |= other.here;
        for (element, fields) in &other.below {
            self.below.entry(element.clone()).or_default().union(fields);
        }
    }

    /// What is in this set and not in the other.
    pub(super) fn without(&self, other: &Self) -> Self {
        let mut rest = Self { here: self.here && !other.here, below: BTreeMap::new() };
        for (element, fields) in &self.below {
            let fields = match other.below.get(element) {
                Some(gone) => fields.without(gone),
                None => fields.clone(),
            };
            rest.add(element.clone(), fields);
        }
        rest
    }

    /// Reads `FieldsV1`.
    pub(super) fn from_json(value: &Value) -> Self {
        let Value::Object(map) = value else { return Self::default() };
        let below: BTreeMap<_, _> = map
            .iter()
            .filter(|(element, _)| *element != ".")
            .map(|(element, fields)| (element.clone(), Self::from_json(fields)))
            .collect();
        Self { here: below.is_empty() || map.contains_key("."), below }
    }

    /// Writes `FieldsV1`.
    pub(super) fn to_json(&self) -> Value {
        let mut map = Map::new();
        if self.here && !self.below.is_empty() {
            map.insert(".".to_owned(), json!({}));
        }
        for (element, fields) in &self.below {
            map.insert(element.clone(), fields.to_json());
        }
        Value::Object(map)
    }
}

/// How an item of a keyed list is named in a set.
fn key_element(item: &Value, keys: &[&str]) -> String {
    let key: Map<String, Value> = keys
        .iter()
        .filter_map(|&key| {
            let value = item.get(key).cloned().or_else(|| key_default(key).map(Value::from))?;
            Some((key.to_owned(), value))
        })
        .collect();
    format!("k:{}", Value::Object(key))
}

/// Whether an element names this item of a list.
pub(super) fn names(element: &str, item: &Value) -> bool {
    if let Some(key) = element.strip_prefix("k:") {
        let Ok(key) = serde_json::from_str::<Document>(key) else { return false };
        return key.iter().all(|(field, value)| match item.get(field) {
            Some(found) => found == value,
            None => key_default(field).is_some_and(|default| value == default),
        });
    }
    element
        .strip_prefix("v:")
        .is_some_and(|value| serde_json::from_str::<Value>(value).is_ok_and(|value| value == *item))
}

/// The value that an element names.
pub(super) fn select<'a>(value: &'a Value, element: &str) -> Option<&'a Value> {
    match element.strip_prefix("f:") {
        Some(name) => value.get(name),
        None => value.as_array()?.iter().find(|item| names(element, item)),
    }
}

/// How an element is told to humans: `.name` or `[name="x"]`.
pub(super) fn told(element: &str) -> String {
    if let Some(name) = element.strip_prefix("f:") {
        return format!(".{name}");
    }
    let key = element.strip_prefix("k:").and_then(|key| serde_json::from_str::<Document>(key).ok());
    match key {
        Some(key) => {
            let parts: Vec<_> = key.iter().map(|(field, value)| format!("{field}={value}")).collect();
            format!("[{}]", parts.join(","))
        }
        None => format!("[={}]", element.trim_start_matches("v:")),
    }
}

#[cfg(test)]
mod tests {
    use super::Fields;
    use crate::apiserver::schema::Schema;
    use serde_json::{Value, json};

    fn fields(value: &Value) -> Fields {
        Fields::of(value, Schema::BuiltIn.root())
    }

    #[test]
    fn sets_are_written_as_kubernetes_writes_them() {
        let set = fields(&json!({
            "metadata": {"labels": {"app": "x"}, "finalizers": ["a/b"]},
            "spec": {
                "containers": [{"name": "c", "args": ["1"], "ports": [{"containerPort": 80}]}],
                "nodeSelector": {"a": "b"}},
        }));
        let port = r#"k:{"containerPort":80,"protocol":"TCP"}"#;
        let expected = json!({
            "f:metadata": {"f:labels": {"f:app": {}}, "f:finalizers": {"v:\"a/b\"": {}}},
            "f:spec": {
                "f:containers": {"k:{\"name\":\"c\"}": {
                    ".": {}, "f:name": {}, "f:args": {}, "f:ports": {port: {".": {}, "f:containerPort": {}}}}},
                "f:nodeSelector": {},
            },
        });
        assert_eq!(set.to_json(), expected);
        assert_eq!(Fields::from_json(&expected), set);
    }

    #[test]
    fn changes_name_only_what_differs() {
        let old =
            json!({"data": {"a": "1", "b": "2"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let new =
            json!({"data": {"a": "1", "b": "3"}, "spec": {"containers": [{"name": "c", "image": "j"}]}});
        let set = Fields::changed(Some(&old), &new, Schema::BuiltIn.root());
        let containers = json!({"k:{\"name\":\"c\"}": {"f:image": {}}});
        assert_eq!(set.to_json(), json!({"f:data": {"f:b": {}}, "f:spec": {"f:containers": containers}}));
    }

    #[test]
    fn sets_subtract_field_by_field() {
        let all = fields(&json!({"data": {"a": "1", "b": "2"}}));
        let some = fields(&json!({"data": {"a": "x"}}));
        assert_eq!(all.without(&some), fields(&json!({"data": {"b": "2"}})));
        assert!(some.without(&all).is_empty());
    }
}
