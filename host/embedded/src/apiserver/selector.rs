//! Selectors of the objects in a list or watch.

use super::call::Query;
use super::failure::Failure;
use super::metadata::{self, Document, at};
use super::resource::Resource;
use kube::core::{Expression, SelectorExt};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The label and field selectors of a request. All requirements of both must hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Selector {
    labels: Vec<Expression>,
    fields: Vec<FieldRequirement>,
}

/// A text that a field must have, or must not have. A missing field counts as `""`.
#[derive(Clone, Debug)]
struct FieldRequirement {
    path: String,
    value: String,
    equal: bool,
}

impl Selector {
    /// Parses `labelSelector` and `fieldSelector`.
    pub(super) fn parse(query: &Query, resource: &Resource) -> Result<Self, Failure> {
        let labels = parse(query.text("labelSelector").unwrap_or_default())?;
        let fields = parse(query.text("fieldSelector").unwrap_or_default())?;
        let fields = fields.into_iter().map(|requirement| field(requirement, resource));
        Ok(Self { labels, fields: fields.collect::<Result<_, _>>()? })
    }

    /// True if the selector matches the object.
    pub(super) fn matches(&self, object: &Document) -> bool {
        let text =
            |path: &str| at(object, &path.replace('.', "/")).and_then(Value::as_str).unwrap_or_default();
        labels_match(&self.labels, object)
            && self.fields.iter().all(|field| field.equal == (text(&field.path) == field.value))
    }
}

fn labels_match(requirements: &[Expression], object: &Document) -> bool {
    if requirements.is_empty() {
        return true;
    }
    let labels = metadata::field(object, "labels");
    let labels = labels.and_then(|labels| BTreeMap::deserialize(labels).ok()).unwrap_or_default();
    requirements.iter().all(|requirement| requirement.matches(&labels))
}

/// Converts a requirement for a field. The field must be one that Kubernetes supports for the kind.
fn field(requirement: Expression, resource: &Resource) -> Result<FieldRequirement, Failure> {
    let supported: &[&str] = match (resource.group.as_str(), resource.plural.as_str()) {
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
    };
    let (path, value, equal) = match requirement {
        Expression::Equal(path, value) => (path, value, true),
        Expression::NotEqual(path, value) => (path, value, false),
        other => return Err(Failure::bad_request(format!("invalid field selector: {other}"))),
    };
    let known = path == "metadata.name"
        || (path == "metadata.namespace" && resource.namespaced)
        || supported.contains(&path.as_str());
    if !known {
        return Err(Failure::bad_request(format!("field label not supported: {path}")));
    }
    Ok(FieldRequirement { path, value, equal })
}

/// Parses a selector: `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
fn parse(text: &str) -> Result<Vec<Expression>, Failure> {
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

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let is_end = |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    };
    text.split(is_end).collect()
}
