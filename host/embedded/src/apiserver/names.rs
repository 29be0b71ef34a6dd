//! The forms of names.

use serde::Deserialize;
use uuid::Uuid;

/// Letters and digits that form no words and are not confused with each other.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX: usize = 5;
/// The longest prefix that leaves room for the suffix within a DNS label.
const PREFIX: usize = 63 - SUFFIX;

/// Returns a name with this prefix and a random suffix.
pub(crate) fn generated_name(prefix: &str) -> String {
    let random = Uuid::new_v4();
    let suffix = random.as_bytes().iter().take(SUFFIX);
    let suffix = suffix.map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]));
    prefix.chars().take(PREFIX).chain(suffix).collect()
}

/// The form of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Form {
    /// A DNS label (RFC 1123).
    Label,
    /// A DNS subdomain (RFC 1123). As in Kubernetes, its parts may be longer than a label.
    Subdomain,
    /// The key of a label or annotation: `[subdomain/]name`.
    QualifiedName,
    LabelValue,
    /// The key of a `ConfigMap` or `Secret`.
    DataKey,
}

impl Form {
    pub(super) fn accepts(self, text: &str) -> bool {
        match self {
            Self::Label => text.len() <= 63 && is_label(text),
            Self::Subdomain => text.len() <= 253 && text.split('.').all(is_label),
            Self::QualifiedName => match text.split_once('/') {
                Some((prefix, name)) => Self::Subdomain.accepts(prefix) && is_qualified_part(name),
                None => is_qualified_part(text),
            },
            Self::LabelValue => text.is_empty() || is_qualified_part(text),
            Self::DataKey => {
                (1..=253).contains(&text.len())
                    && text.bytes().all(is_name_byte)
                    && text != "."
                    && !text.starts_with("..")
            }
        }
    }

    /// Returns the form in words.
    pub(super) fn rule(self) -> &'static str {
        match self {
            Self::Label => "must be a DNS label (a-z, 0-9, '-'; at most 63)",
            Self::Subdomain => "must be a DNS subdomain (a-z, 0-9, '-', '.'; at most 253)",
            Self::QualifiedName => {
                "must be a name of at most 63 letters, digits, '-', '_', '.', after an optional 'domain/'"
            }
            Self::LabelValue => {
                "must be at most 63 letters, digits, '-', '_', '.', and begin and end with a letter or digit"
            }
            Self::DataKey => "must be 1 to 253 letters, digits, '-', '_', '.', and not begin with '..'",
        }
    }
}

fn is_label(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

fn is_qualified_part(text: &str) -> bool {
    (1..=63).contains(&text.len())
        && text.bytes().all(is_name_byte)
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
}
