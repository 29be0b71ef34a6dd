//! Keys and values of labels ("Labels and Selectors" in Kubernetes' documentation).

use super::Problem;
use super::object_name::check_subdomain;
use super::parsed::parsed_name;
use super::slug;

/// The longest label value, and the longest name part of a key, in characters.
const MAX_VALUE_LENGTH: usize = 63;

parsed_name! {
    /// A label's value: empty, or at most 63 of `A-Z a-z 0-9 . _ -` with a letter or digit at both ends.
    #[derive(Default)]
    LabelValue, "label value", check_value
}

parsed_name! {
    /// A label's or annotation's key: a name of the shape of a non-empty [`LabelValue`], with an optional subdomain
    /// and `/` before it.
    LabelKey, "label key", check_key
}

impl LabelValue {
    /// Returns a label value for any name, independent of the slug scheme: the name itself if it is a valid value, or
    /// else a slug of at most 32 characters. An empty name gives an empty value.
    ///
    /// KubeSpawner folds case by Unicode's rules and therefore accepts U+017F, which Kubernetes refuses. Here only
    /// ASCII letters are accepted.
    pub fn for_name(name: &str) -> Self {
        Self(slug::safe(name, |name| check_value(name).is_ok(), None))
    }
}

pub(super) fn check_value(value: &str) -> Result<(), Problem> {
    if value.len() > MAX_VALUE_LENGTH {
        return Err(Problem::TooLong { length: value.len(), limit: MAX_VALUE_LENGTH });
    }
    let end = |c: Option<u8>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    let inside = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
    if end(value.bytes().next()) && end(value.bytes().last()) && value.bytes().all(inside) {
        return Ok(());
    }
    Err(Problem::Shape("letters, digits, '.', '_' and '-', with a letter or digit at both ends"))
}

fn check_key(value: &str) -> Result<(), Problem> {
    let name = match value.split_once('/') {
        Some((prefix, name)) => {
            check_subdomain(prefix)?;
            name
        }
        None => value,
    };
    if name.is_empty() { Err(Problem::Empty) } else { check_value(name) }
}
