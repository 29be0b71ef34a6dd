//! Names of Kubernetes objects ("Object Names and IDs" in its documentation).

use super::Problem;
use super::parsed::parsed_name;

parsed_name! {
    /// The name of an object in a namespace: an RFC 1123 subdomain, at most 253 characters of `a-z 0-9 - .`, each
    /// dot-separated part starting and ending with a letter or digit.
    ///
    /// The rule is wider than that of names made by the `safe` scheme, because volumes named by `escape` must stay
    /// usable.
    ObjectName, "object name", check_subdomain
}

parsed_name! {
    /// A namespace's name: an RFC 1123 label, at most 63 characters of `a-z 0-9 -`, a letter or digit at both ends.
    NamespaceName, "namespace", check_label
}

parsed_name! {
    /// An RFC 1123 label that is not a namespace: the name of a container, a volume or a port.
    DnsLabel, "name", check_label
}

impl NamespaceName {
    /// `jupyterhub`: the default namespace of the Hub.
    pub fn jupyterhub() -> Self {
        Self("jupyterhub".to_owned())
    }
}

impl From<NamespaceName> for ObjectName {
    /// Converts the label to a subdomain: every label is a valid subdomain.
    fn from(name: NamespaceName) -> Self {
        Self(name.into())
    }
}

impl From<DnsLabel> for ObjectName {
    /// Converts the label to a subdomain: every label is a valid subdomain.
    fn from(name: DnsLabel) -> Self {
        Self(name.into())
    }
}

pub(super) fn check_subdomain(value: &str) -> Result<(), Problem> {
    length(value, 253)?;
    if value.split('.').all(is_label) {
        return Ok(());
    }
    Err(Problem::Shape(
        "lower case letters, digits, '-' and '.', with a letter or digit at both ends and around each '.'",
    ))
}

pub(super) fn check_label(value: &str) -> Result<(), Problem> {
    length(value, 63)?;
    if is_label(value) {
        return Ok(());
    }
    Err(Problem::Shape("lower case letters, digits and '-', with a letter or digit at both ends"))
}

fn length(value: &str, limit: usize) -> Result<(), Problem> {
    match value.len() {
        0 => Err(Problem::Empty),
        length if length > limit => Err(Problem::TooLong { length, limit }),
        _ => Ok(()),
    }
}

fn is_label(part: &str) -> bool {
    let alphanumeric = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    part.bytes().all(|c| alphanumeric(c) || c == b'-')
        && part.bytes().next().is_some_and(alphanumeric)
        && part.bytes().last().is_some_and(alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{LabelKey, LabelValue};

    type Accepts = fn(&str) -> bool;

    /// The table that all packages with names are tested with.
    #[test]
    fn the_accepted_names_are_those_of_kubernetes() {
        let table = include_str!("../../../../tests/tables/names.json");
        let table: serde_json::Value = serde_json::from_str(table).unwrap();
        let accepts: [(&str, Accepts); 4] = [
            ("label", |text| NamespaceName::parse(text).is_ok() && DnsLabel::parse(text).is_ok()),
            ("subdomain", |text| ObjectName::parse(text).is_ok()),
            ("label value", |text| LabelValue::parse(text).is_ok()),
            ("qualified name", |text| LabelKey::parse(text).is_ok()),
        ];
        for (form, accepts) in accepts {
            for (verdict, expected) in [("good", true), ("bad", false)] {
                for text in table[form][verdict].as_array().unwrap() {
                    assert_eq!(accepts(text.as_str().unwrap()), expected, "{form} {text}");
                }
            }
        }
        assert_eq!(table.as_object().unwrap().len(), accepts.len());
    }

    #[test]
    fn names_that_are_too_long_are_refused() {
        assert!(ObjectName::parse("a".repeat(253)).is_ok() && ObjectName::parse("a".repeat(254)).is_err());
        assert!(DnsLabel::parse("a".repeat(63)).is_ok() && DnsLabel::parse("a".repeat(64)).is_err());
        assert!(LabelValue::parse("a".repeat(63)).is_ok() && LabelValue::parse("a".repeat(64)).is_err());
    }
}
