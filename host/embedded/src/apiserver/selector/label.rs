//! Label selectors, as queries carry them: `a=b,c!=d,e in (f,g),h notin (i),j,!k`.

use crate::apiserver::failure::Failure;
use crate::apiserver::metadata::{self, Document};

/// All of its requirements have to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
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
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        split_outside_parentheses(text)
            .into_iter()
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| {
                Requirement::parse(part).ok_or_else(|| {
                    Failure::bad_request(format!(
                        "unable to parse requirement {part:?} of labelSelector {text:?}"
                    ))
                })
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(super) fn matches(&self, object: &Document) -> bool {
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

impl Requirement {
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

#[cfg(test)]
mod tests {
    use super::LabelSelector;
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
}
