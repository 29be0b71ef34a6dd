//! Which objects a list or watch is about.
//!
//! `kube::core::Selector` matches labels too, but cannot be read from a query.

use super::failure::Failure;
use super::metadata::{self, Document};
use super::query::Query;
use super::resource::Resource;
use serde_json::Value;

/// Label and field selector of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Selector {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selector {
    /// Reads `labelSelector` and `fieldSelector`.
    pub(super) fn parse(query: &Query, resource: &Resource) -> Result<Self, Failure> {
        Ok(Self {
            labels: LabelSelector::parse(query.text("labelSelector").unwrap_or_default())?,
            fields: FieldSelector::parse(query.text("fieldSelector").unwrap_or_default(), resource)?,
        })
    }

    /// Whether it selects the object.
    pub(super) fn matches(&self, object: &Document) -> bool {
        self.labels.matches(object) && self.fields.matches(object)
    }
}

// Label selectors, as queries carry them: `a=b,c!=d,e in (f,g),h notin (i),j,!k`.

/// All of its requirements have to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct LabelSelector(Vec<LabelRequirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct LabelRequirement {
    key: String,
    rule: Rule,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    Exists,
    Missing,
    In(Vec<String>),
    /// Holds also when there is no such label.
    NotIn(Vec<String>),
}

impl LabelSelector {
    fn parse(text: &str) -> Result<Self, Failure> {
        split_outside_parentheses(text)
            .into_iter()
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| {
                LabelRequirement::parse(part).ok_or_else(|| {
                    Failure::bad_request(format!(
                        "unable to parse requirement {part:?} of labelSelector {text:?}"
                    ))
                })
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn matches(&self, object: &Document) -> bool {
        let labels = metadata::field(object, "labels");
        self.0.iter().all(|requirement| {
            let value = labels.and_then(|l| l.get(&requirement.key)).and_then(|v| v.as_str());
            match &requirement.rule {
                Rule::Exists => value.is_some(),
                Rule::Missing => value.is_none(),
                Rule::In(values) => value.is_some_and(|v| values.iter().any(|x| x == v)),
                Rule::NotIn(values) => value.is_none_or(|v| values.iter().all(|x| x != v)),
            }
        })
    }
}

impl LabelRequirement {
    fn parse(text: &str) -> Option<Self> {
        let new = |key: &str, rule| {
            let key = key.trim();
            let plain = !key.is_empty() && !key.contains(|c: char| c.is_whitespace() || "()!=,".contains(c));
            plain.then(|| Self { key: key.to_owned(), rule })
        };
        if let Some(key) = text.strip_prefix('!') {
            return new(key, Rule::Missing);
        }
        if let Some((key, value)) = text.split_once("!=") {
            return new(key, Rule::NotIn(vec![value.trim().to_owned()]));
        }
        if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
            return new(key, Rule::In(vec![value.trim().to_owned()]));
        }
        if let Some((head, values)) = text.split_once('(') {
            let values = values.strip_suffix(')')?.split(',').map(|v| v.trim().to_owned()).collect();
            let (key, operator) = head.trim().rsplit_once(char::is_whitespace)?;
            return match operator {
                "in" => new(key, Rule::In(values)),
                "notin" => new(key, Rule::NotIn(values)),
                _ => None,
            };
        }
        new(text, Rule::Exists)
    }
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
        ("", "pods") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
        ],
        ("", "events") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("", "namespaces") => &["status.phase"],
        ("", "secrets") => &["type"],
        _ => &[],
    }
}

impl FieldSelector {
    fn parse(text: &str, resource: &Resource) -> Result<Self, Failure> {
        text.split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| {
                let requirement = FieldRequirement::parse(part).ok_or_else(|| {
                    Failure::bad_request(format!("invalid selector: {text:?}; can't understand {part:?}"))
                })?;
                let path = requirement.path.as_str();
                let known = path == "metadata.name"
                    || (path == "metadata.namespace" && resource.namespaced)
                    || supported(resource).contains(&path);
                if known {
                    Ok(requirement)
                } else {
                    Err(Failure::bad_request(format!("field label not supported: {path}")))
                }
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn matches(&self, object: &Document) -> bool {
        self.0
            .iter()
            .all(|requirement| requirement.equal == (read(object, &requirement.path) == requirement.value))
    }
}

impl FieldRequirement {
    fn parse(text: &str) -> Option<Self> {
        let (path, value, equal) = if let Some((path, value)) = text.split_once("!=") {
            (path, value, false)
        } else {
            let (path, value) = text.split_once("==").or_else(|| text.split_once('='))?;
            (path, value, true)
        };
        Some(Self { path: path.to_owned(), value: value.to_owned(), equal })
    }
}

/// The field's value as text: a missing one is `""`.
fn read(object: &Document, path: &str) -> String {
    let path = if path == "source" { "source.component" } else { path };
    let mut steps = path.split('.');
    let mut value = steps.next().and_then(|step| object.get(step));
    for step in steps {
        value = value.and_then(|v| v.get(step));
    }
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(switch)) => switch.to_string(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{FieldSelector, LabelSelector};
    use crate::apiserver::resource::built_in;
    use serde_json::json;

    #[test]
    fn selects_as_kubernetes_documents_it() {
        let object = json!({"metadata": {"labels": {"app": "lab", "tier": "gold", "empty": ""}}});
        let object = object.as_object().unwrap();
        for (selector, expected) in [
            ("", true),
            ("app=lab", true),
            ("app==lab,tier=gold", true),
            ("app=hub", false),
            ("app!=hub", true),
            ("nosuch!=x", true),
            ("app", true),
            ("!app", false),
            ("!nosuch", true),
            ("nosuch", false),
            ("tier in (gold, silver)", true),
            ("tier in (silver),app=lab", false),
            ("tier notin (silver,bronze),app", true),
            ("nosuch notin (a)", true),
            ("empty=", true),
        ] {
            let parsed = LabelSelector::parse(selector).unwrap();
            assert_eq!(parsed.matches(object), expected, "{selector:?}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["a b", "=x", "a in", "a in (b", "a of (b)", "!", "a,b c"] {
            assert!(LabelSelector::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn selects_by_supported_fields_only() {
        let pods = built_in("", "pods").unwrap();
        let object = json!({"metadata": {"name": "a", "namespace": "n"}, "spec": {"nodeName": "here"}, "status": {"phase": "Running"}});
        let object = object.as_object().unwrap();
        for (selector, expected) in [
            ("", true),
            ("metadata.name=a,metadata.namespace=n", true),
            ("spec.nodeName=", false),
            ("spec.nodeName!=", true),
            ("status.phase!=Running", false),
        ] {
            assert_eq!(
                FieldSelector::parse(selector, &pods).unwrap().matches(object),
                expected,
                "{selector}"
            );
        }
        assert!(FieldSelector::parse("spec.foo=1", &pods).is_err());
        assert!(FieldSelector::parse("garbage", &pods).is_err());
    }
}
