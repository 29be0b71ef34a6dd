//! A file of values, with the line of each key.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;

/// A file of values as Helm reads it.
pub struct ValuesFile {
    /// The name for messages.
    pub name: String,
    pub(crate) values: Value,
    lines: BTreeMap<String, u64>,
}

impl ValuesFile {
    /// Reads a file. The error says where it is no YAML, or no map.
    ///
    /// # Errors
    /// The problem, with its line.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        // Helm's YAML is version 1.1, in which `0755` is octal and `yes` is true.
        let options = serde_saphyr::options! { legacy_octal_numbers: true, with_snippet: false };
        let node: Node = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| format!("{name}: {}", error.to_string().replace('\n', " ")))?;
        let mut lines = BTreeMap::new();
        let values = node.into_value("", &mut lines);
        match values {
            Value::Object(_) | Value::Null => Ok(Self { name: name.to_owned(), values, lines }),
            _ => Err(format!("{name}: a file of values is a map, such as `singleuser: {{...}}`")),
        }
    }

    /// The line of a key, from 1; none if the file does not have it.
    pub(crate) fn line(&self, path: &str) -> Option<u64> {
        self.lines.get(path).copied()
    }
}

/// Appends a key to a path.
pub(crate) fn below(path: &str, key: &str) -> String {
    match (path, key) {
        ("", one) | (one, "") => one.to_owned(),
        _ => format!("{path}.{key}"),
    }
}

enum Node {
    Scalar(Value),
    List(Vec<Node>),
    /// The entries, each with the line of its key.
    Map(Vec<(String, u64, Node)>),
}

impl Node {
    fn into_value(self, path: &str, lines: &mut BTreeMap<String, u64>) -> Value {
        match self {
            Self::Scalar(value) => value,
            Self::List(items) => {
                let items = items.into_iter().enumerate();
                items.map(|(at, item)| item.into_value(&format!("{path}[{at}]"), lines)).collect()
            }
            Self::Map(entries) => {
                let entries = entries.into_iter().map(|(key, line, value)| {
                    let path = below(path, &key);
                    let value = value.into_value(&path, lines);
                    lines.insert(path, line);
                    (key, value)
                });
                Value::Object(entries.collect::<Map<_, _>>())
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("values")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Node, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("is not a finite number"))?;
        Ok(Node::Scalar(number.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries: Vec<(String, u64, Node)> = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            let line = key.referenced.line();
            if entries.iter().any(|(known, _, _)| *known == key.value) {
                return Err(A::Error::custom(format!("line {line}: the key `{}` is there twice", key.value)));
            }
            entries.push((key.value, line, map.next_value()?));
        }
        Ok(Node::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_have_lines_and_scalars_are_those_of_helm() {
        let text = "a:\n  b: yes\n  mode: 0755\nlist:\n- x: 1\n  y.z: text\nlarge: 15611359038\nnothing: null\n8888: on\n";
        let file = ValuesFile::parse("values.yaml", text).unwrap();
        assert_eq!(
            file.values,
            json!({
                "a": {"b": true, "mode": 493}, "list": [{"x": 1, "y.z": "text"}], "large": 15_611_359_038_u64,
                "nothing": null, "8888": true
            })
        );
        assert_eq!(file.line("a.mode"), Some(3));
        assert_eq!(file.line("list[0].y.z"), Some(6));
        assert_eq!(file.line("gone"), None);
    }

    #[test]
    fn an_anchor_counts_where_it_is_used() {
        let file = ValuesFile::parse("v", "a: &a {x: 1}\nb:\n  <<: *a\n  y: 2\nc: *a\n").unwrap();
        assert_eq!(file.values, json!({"a": {"x": 1}, "b": {"x": 1, "y": 2}, "c": {"x": 1}}));
    }

    #[test]
    fn what_is_no_file_of_values_is_refused_with_its_line() {
        for (text, says) in [
            ("a: [", "v: "),
            ("- a", "a file of values is a map"),
            ("text", "a file of values is a map"),
            ("a: 1\nb: 2\na: 3\n", "line 3"),
            ("a: {{ .Values.x }}\n", "v: "),
            ("a: .nan\n", "v: "),
        ] {
            let error = ValuesFile::parse("v", text).err().unwrap_or_else(|| panic!("{text}"));
            assert!(error.contains(says), "{text}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
        assert_eq!(ValuesFile::parse("v", "").unwrap().values, Value::Null);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ -~\n]{0,200}") {
            let _ = ValuesFile::parse("v", &text);
        }
    }
}
