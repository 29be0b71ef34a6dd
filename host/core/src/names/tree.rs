//! Templates inside structured configuration: volumes, mounts, environment, labels.

use serde_json::{Map, Value};

use super::field::{Fields, TemplateScope};
use super::problem::TemplateError;
use super::template::Template;

/// A JSON value in which every string is a template, also inside lists and as the value of a map. Keys are not
/// templates.
///
/// Only a site's configuration is parsed into this type. Text from a user, or from a policy's answer, is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateTree(Node);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    /// Null, a boolean or a number.
    Plain(Value),
    Text(Template),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl TemplateTree {
    /// Parses all strings of `value`, which is at the configuration key `key`. Each error contains the key of its
    /// string.
    pub fn parse(key: &str, value: &Value) -> Result<Self, Vec<TemplateError>> {
        let mut errors = Vec::new();
        let node = parse(key, value, &mut errors);
        if errors.is_empty() { Ok(Self(node)) } else { Err(errors) }
    }

    /// Returns the value with all templates rendered.
    pub fn render(&self, fields: &Fields) -> Value {
        render(&self.0, fields)
    }

    /// True if any of the templates contains `{userid}`.
    pub fn needs_userid(&self) -> bool {
        needs_userid(&self.0)
    }
}

fn parse(key: &str, value: &Value, errors: &mut Vec<TemplateError>) -> Node {
    match value {
        Value::String(text) => match Template::parse(key, text, TemplateScope::Lab) {
            Ok(template) => Node::Text(template),
            Err(error) => {
                errors.push(error);
                Node::Plain(Value::Null)
            }
        },
        Value::Array(items) => Node::List(
            items.iter().enumerate().map(|(i, item)| parse(&format!("{key}[{i}]"), item, errors)).collect(),
        ),
        Value::Object(map) => {
            let entry = |(name, item): (&String, &Value)| {
                (name.clone(), parse(&format!("{key}.{name}"), item, errors))
            };
            Node::Map(map.iter().map(entry).collect())
        }
        plain => Node::Plain(plain.clone()),
    }
}

fn render(node: &Node, fields: &Fields) -> Value {
    match node {
        Node::Plain(value) => value.clone(),
        Node::Text(template) => Value::String(template.render(fields)),
        Node::List(items) => items.iter().map(|item| render(item, fields)).collect(),
        Node::Map(entries) => Value::Object(
            entries.iter().map(|(key, item)| (key.clone(), render(item, fields))).collect::<Map<_, _>>(),
        ),
    }
}

fn needs_userid(node: &Node) -> bool {
    match node {
        Node::Plain(_) => false,
        Node::Text(template) => template.needs_userid(),
        Node::List(items) => items.iter().any(needs_userid),
        Node::Map(entries) => entries.iter().any(|(_, item)| needs_userid(item)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::names::{Compat, SlugScheme};

    #[test]
    fn strings_in_lists_and_map_values_are_templates_and_keys_are_not() {
        let mounts =
            json!([{"{username}": "{username}", "readOnly": true, "subPaths": ["a", "{user_server}"]}]);
        let tree = TemplateTree::parse("volumeMounts", &mounts).unwrap();
        let fields = Fields::new("ada", "gpu", None, SlugScheme::Safe, Compat::V7_1_0);
        assert_eq!(
            tree.render(&fields),
            json!([{"{username}": "ada", "readOnly": true, "subPaths": ["a", "ada--gpu"]}])
        );
        assert!(!tree.needs_userid());
    }

    #[test]
    fn every_error_names_its_place() {
        let errors = TemplateTree::parse("env", &json!({"A": "{x}", "B": ["ok", "{"]})).unwrap_err();
        let keys: Vec<&str> = errors.iter().map(|error| error.key.as_str()).collect();
        assert_eq!(keys, ["env.A", "env.B[1]"]);
    }
}
