//! Which objects a list or watch is about.
//!
//! `kube::core::Selector` matches labels too, but cannot be read from a query.

use super::call::Query;
use super::failure::Failure;
use super::metadata::{self, Document, at};
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
#[derive(Clone, Debug, Default)]
struct LabelSelector(Vec<LabelRequirement>);

#[derive(Clone, Debug)]
struct LabelRequirement {
    key: String,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    Exists,
    Missing,
    In(Vec<String>),
    /// Holds also when there is no such label.
    NotIn(Vec<String>),
}

impl LabelSelector {
    fn parse(text: &str) -> Result<Self, Failure> {
        let parts =
            split_outside_parentheses(text).into_iter().map(str::trim).filter(|part| !part.is_empty());
        let requirements = parts.map(|part| {
            LabelRequirement::parse(part).ok_or_else(|| {
                Failure::bad_request(format!("unable to parse requirement {part:?} of {text:?}"))
            })
        });
        requirements.collect::<Result<_, _>>().map(Self)
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
        let one = |value: &str| vec![value.trim().to_owned()];
        let (key, rule) = if let Some(key) = text.strip_prefix('!') {
            (key, Rule::Missing)
        } else if let Some((key, value)) = text.split_once("!=") {
            (key, Rule::NotIn(one(value)))
        } else if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
            (key, Rule::In(one(value)))
        } else if let Some((head, values)) = text.split_once('(') {
            let values = values.strip_suffix(')')?.split(',').map(|v| v.trim().to_owned()).collect();
            match head.trim().rsplit_once(char::is_whitespace)? {
                (key, "in") => (key, Rule::In(values)),
                (key, "notin") => (key, Rule::NotIn(values)),
                _ => return None,
            }
        } else {
            (text, Rule::Exists)
        };
        let key = key.trim();
        let plain = !key.is_empty() && !key.contains(|c: char| c.is_whitespace() || "()!=,".contains(c));
        plain.then(|| Self { key: key.to_owned(), rule })
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
    use super::LabelSelector;
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
            let parsed = LabelSelector::parse(selector).unwrap();
            assert_eq!(parsed.matches(object.as_object().unwrap()), expected, "{selector:?}");
        }
        for text in ["a b", "=x", "a in", "a in (b", "a of (b)", "!", "a,b c"] {
            assert!(LabelSelector::parse(text).is_err(), "{text:?}");
        }
    }
}
