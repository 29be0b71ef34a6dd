//! Helm's layers of values.

use serde_json::{Map, Value};

/// Puts values files on top of each other and all of them on top of the chart's defaults, as `helm -f` does: maps are
/// merged, all other values replace earlier ones, and `null` removes what is below. Helm does not look into lists: a `null`
/// there stays, such as that of `mem_limit: null` in a profile.
pub fn layered(defaults: &Value, files: &[&Value]) -> Value {
    let mut given = Value::Object(Map::new());
    for file in files.iter().filter(|file| !file.is_null()) {
        put(&mut given, file);
    }
    let mut all = defaults.clone();
    put(&mut all, &given);
    without_nulls(&mut all);
    all
}

/// Puts `above` on top. A `null` is kept as long as there may be a layer below that it removes something of.
fn put(below: &mut Value, above: &Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                put(below.entry(key).or_insert(Value::Null), value);
            }
        }
        (below, above) => above.clone_into(below),
    }
}

fn without_nulls(value: &mut Value) {
    if let Value::Object(entries) = value {
        entries.retain(|_, value| !value.is_null());
        entries.values_mut().for_each(without_nulls);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn maps_are_merged_lists_replaced_and_null_removes() {
        let defaults = json!({"a": {"x": 1, "y": [1, 2]}, "b": {"z": 1}, "c": 3});
        for (files, expected) in [
            (vec![], json!({"a": {"x": 1, "y": [1, 2]}, "b": {"z": 1}, "c": 3})),
            (vec![json!({"a": {"y": [3]}})], json!({"a": {"x": 1, "y": [3]}, "b": {"z": 1}, "c": 3})),
            (vec![json!({"a": null, "c": {"n": null}})], json!({"b": {"z": 1}, "c": {}})),
            (
                vec![json!({"a": {"new": {"one": 1}}}), json!({"a": {"new": {"one": null}, "x": null}})],
                json!({"a": {"y": [1, 2], "new": {}}, "b": {"z": 1}, "c": 3}),
            ),
            // A later file takes a removal back, and the defaults with it.
            (
                vec![json!({"b": null}), json!({"b": {"w": 2}})],
                json!({"a": {"x": 1, "y": [1, 2]}, "b": {"w": 2, "z": 1}, "c": 3}),
            ),
            (
                vec![json!({"c": [{"x": null}, null]})],
                json!({"a": {"x": 1, "y": [1, 2]}, "b": {"z": 1}, "c": [{"x": null}, null]}),
            ),
            (vec![json!(null)], json!({"a": {"x": 1, "y": [1, 2]}, "b": {"z": 1}, "c": 3})),
        ] {
            let files: Vec<_> = files.iter().collect();
            assert_eq!(layered(&defaults, &files), expected, "{files:?}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            "[a-c]".prop_map(Value::from)
        ];
        let tree = leaf.prop_recursive(3, 20, 3, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map("[a-d]", inner, 0..4)
                    .prop_map(|entries| entries.into_iter().collect::<Map<_, _>>().into()),
            ]
        });
        proptest::collection::btree_map("[a-d]", tree, 0..4)
            .prop_map(|entries| entries.into_iter().collect::<Map<_, _>>().into())
    }

    fn cleaned(mut value: Value) -> Value {
        without_nulls(&mut value);
        value
    }

    /// Every value of the last file that is neither a map nor `null` is in the result, at its place.
    fn has(all: &Value, file: &Value) -> bool {
        match (all, file) {
            (_, Value::Null) => true,
            (Value::Object(all), Value::Object(file)) => file.iter().all(|(key, value)| match all.get(key) {
                Some(found) => !value.is_null() && has(found, value),
                None => value.is_null(),
            }),
            (all, file) => *all == cleaned(file.clone()),
        }
    }

    proptest! {
        #[test]
        fn a_layer_without_content_changes_nothing(defaults in values(), file in values()) {
            let alone = layered(&defaults, &[&file]);
            let empty = json!({});
            prop_assert_eq!(&layered(&defaults, &[&empty, &file, &empty]), &alone);
            prop_assert_eq!(&layered(&defaults, &[&file, &file]), &alone);
            prop_assert_eq!(layered(&defaults, &[]), cleaned(defaults));
        }

        #[test]
        fn the_last_file_counts(defaults in values(), first in values(), last in values()) {
            prop_assert!(has(&layered(&defaults, &[&first, &last]), &last));
        }

        #[test]
        fn nothing_is_left_of_null(defaults in values(), file in values()) {
            let all = layered(&defaults, &[&file]);
            prop_assert_eq!(&cleaned(all.clone()), &all);
        }
    }
}
