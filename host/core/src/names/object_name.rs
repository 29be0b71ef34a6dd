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
    /// Every label is a valid subdomain.
    fn from(name: NamespaceName) -> Self {
        Self(name.into())
    }
}

impl From<DnsLabel> for ObjectName {
    /// Every label is a valid subdomain.
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

fn check_label(value: &str) -> Result<(), Problem> {
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

    #[test]
    fn object_names_are_subdomains() {
        for good in ["a", "9z", "nb-ada", "a.b-c.d", &"a".repeat(253)] {
            assert!(ObjectName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "a..b", ".a", "a_b", "A", "ü", &"a".repeat(254)] {
            assert!(ObjectName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn namespaces_are_labels() {
        assert!(NamespaceName::parse("nublado-ada---1a1cf792").is_ok());
        for bad in ["", "a.b", "-a", &"a".repeat(64)] {
            assert!(NamespaceName::parse(bad).is_err(), "{bad}");
        }
    }
}
