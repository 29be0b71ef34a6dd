//! Which objects a list or watch is about.

use super::call::Query;
use super::failure::Failure;
use super::metadata::{self, Document, at};
use super::resource::Resource;
use kube::core::{Expression, SelectorExt};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Label and field selector of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Selector {
    labels: Vec<Expression>,
    fields: FieldSelector,
}

impl Selector {
    /// Reads `labelSelector` and `fieldSelector`.
    pub(super) fn parse(query: &Query, resource: &Resource) -> Result<Self, Failure> {
        Ok(Self {
            labels: parse_labels(query.text("labelSelector").unwrap_or_default())?,
            fields: FieldSelector::parse(query.text("fieldSelector").unwrap_or_default(), resource)?,
        })
    }

    /// Whether it selects the object.
    pub(super) fn matches(&self, object: &Document) -> bool {
        labels_match(&self.labels, object) && self.fields.matches(object)
    }
}

/// Reads a label selector: `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
fn parse_labels(text: &str) -> Result<Vec<Expression>, Failure> {
    let parts = split_outside_parentheses(text).into_iter().map(str::trim).filter(|part| !part.is_empty());
    let requirements = parts.map(|part| {
        parse_requirement(part)
            .ok_or_else(|| Failure::bad_request(format!("unable to parse requirement {part:?} of {text:?}")))
    });
    requirements.collect()
}

fn parse_requirement(text: &str) -> Option<Expression> {
    let key = |key: &str| {
        let key = key.trim();
        let plain = !key.is_empty() && !key.contains(|c: char| c.is_whitespace() || "()!=,".contains(c));
        plain.then(|| key.to_owned())
    };
    Some(if let Some(name) = text.strip_prefix('!') {
        Expression::DoesNotExist(key(name)?)
    } else if let Some((name, value)) = text.split_once("!=") {
        Expression::NotEqual(key(name)?, value.trim().to_owned())
    } else if let Some((name, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        Expression::Equal(key(name)?, value.trim().to_owned())
    } else if let Some((head, values)) = text.split_once('(') {
        let values = values.strip_suffix(')')?.split(',').map(|value| value.trim().to_owned()).collect();
        match head.trim().rsplit_once(char::is_whitespace)? {
            (name, "in") => Expression::In(key(name)?, values),
            (name, "notin") => Expression::NotIn(key(name)?, values),
            _ => return None,
        }
    } else {
        Expression::Exists(key(text)?)
    })
}

fn labels_match(requirements: &[Expression], object: &Document) -> bool {
    if requirements.is_empty() {
        return true;
    }
    let labels = metadata::field(object, "labels");
    let labels = labels.and_then(|labels| BTreeMap::deserialize(labels).ok()).unwrap_or_default();
    requirements.iter().all(|requirement| requirement.matches(&labels))
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

// Field selectors: `metadata.name=x,status.phase!=Running`, for the fields that Kubernetes supports for a kind.

/// All of its requirements have to hold.
#[derive(Clone, Debug, Default)]
struct FieldSelector(Vec<FieldRequirement>);

#[derive(Clone, Debug)]
struct FieldRequirement {
    path: String,
    value: String,
    equal: bool,
}

/// The fields that may be selected by, beyond name and namespace.
fn supported(resource: &Resource) -> &'static [&'static str] {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => &["spec.nodeName", "spec.schedulerName", "status.phase", "status.podIP"],
        ("", "events") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "reason",
            "type",
        ],
        ("", "namespaces") => &["status.phase"],
        ("", "secrets") => &["type"],
        _ => &[],
    }
}

impl FieldSelector {
    fn parse(text: &str, resource: &Resource) -> Result<Self, Failure> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let requirements = parts.map(|part| {
            let unequal = part.split_once("!=").map(|(path, value)| (path, value, false));
            let equal = || part.split_once("==").or_else(|| part.split_once('='));
            let read = unequal.or_else(|| equal().map(|(path, value)| (path, value, true)));
            let (path, value, equal) = read.ok_or_else(|| {
                Failure::bad_request(format!("invalid selector: {text:?}; can't read {part:?}"))
            })?;
            let known = path == "metadata.name"
                || (path == "metadata.namespace" && resource.namespaced)
                || supported(resource).contains(&path);
            if !known {
                return Err(Failure::bad_request(format!("field label not supported: {path}")));
            }
            Ok(FieldRequirement { path: path.to_owned(), value: value.to_owned(), equal })
        });
        requirements.collect::<Result<_, _>>().map(Self)
    }

    fn matches(&self, object: &Document) -> bool {
        self.0
            .iter()
            .all(|requirement| requirement.equal == (read(object, &requirement.path) == requirement.value))
    }
}

/// The text in the field: a missing one is `""`.
fn read<'a>(object: &'a Document, path: &str) -> &'a str {
    at(object, &path.replace('.', "/")).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{labels_match, parse_labels};
    use serde_json::json;

    #[test]
    fn labels_select_as_kubernetes_documents_it() {
        let object = json!({"metadata": {"labels": {"app": "lab", "tier": "gold", "empty": ""}}});
        for (selector, expected) in [
            ("app==lab,tier=gold", true),
            ("nosuch!=x", true),
            ("!app", false),
            ("tier in (silver),app=lab", false),
            ("tier notin (silver,bronze),app", true),
            ("nosuch notin (a)", true),
            ("empty=", true),
        ] {
            let parsed = parse_labels(selector).unwrap();
            assert_eq!(labels_match(&parsed, object.as_object().unwrap()), expected, "{selector:?}");
        }
        for text in ["a b", "=x", "a in", "a in (b", "a of (b)", "!", "a,b c"] {
            assert!(parse_labels(text).is_err(), "{text:?}");
        }
    }
}
