//! Slugs: a readable part of any name that Kubernetes accepts, with a hash where the readable part alone would not be
//! unique. The algorithms are exactly those of KubeSpawner 7.1.0, because volumes are found by these names.
//!
//! Lengths count characters (code points), as Python does; there is no Unicode normalisation.

use std::fmt::Write as _;

use super::object_name::check_label;
use crate::values::digest::Digest;

/// The longest slug of a template field, in characters.
pub(super) const FIELD: usize = 48;

/// The length to which a slug is shortened where its rule defines none.
const DEFAULT: usize = 32;

/// The length of `---` and eight hexadecimal digits.
const HASH_SUFFIX: usize = 11;

/// Returns the name itself if it is `valid` and no longer than `limit` characters, else a readable piece of it and a
/// hash.
pub(super) fn safe(name: &str, valid: impl Fn(&str) -> bool, limit: Option<usize>) -> String {
    let too_long = limit.is_some_and(|limit| name.chars().count() > limit);
    if too_long || name.contains("--") || !valid(name) {
        strip_hash(name, limit.unwrap_or(DEFAULT))
    } else {
        name.to_owned()
    }
}

/// Returns one slug for several names: readable parts joined by `--`, then a hash of all names; at most `limit`
/// characters.
pub(super) fn multi(names: &[&str], limit: usize) -> String {
    // Two characters less for the joint of each part. Unused characters stay unused, as in KubeSpawner.
    let piece = ((limit.saturating_sub(9)) / names.len().max(1)).saturating_sub(2);
    let pieces: Vec<String> = names.iter().map(|name| extract(name, piece)).collect();
    // 0xFF does not occur in UTF-8, so two different lists of names never give the same input to the hash.
    let hashed = names.iter().map(|name| name.as_bytes()).collect::<Vec<_>>().join(&0xFF);
    format!("{}---{}", pieces.join("--"), sha8(&hashed))
}

/// Applies the scheme before KubeSpawner 7: every byte except `a-z 0-9` becomes `-` and its hexadecimal value. Slugs
/// are unique for names without control characters. The length and the first and last characters are not checked.
pub(super) fn escape(name: &str) -> String {
    let mut slug = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_lowercase() || byte.is_ascii_digit() {
            slug.push(char::from(byte));
        } else {
            // Not padded to two digits, as in KubeSpawner. Writing to a String cannot fail.
            let _ = write!(slug, "-{byte:x}");
        }
    }
    slug
}

fn strip_hash(name: &str, limit: usize) -> String {
    format!("{}---{}", extract(name, limit.saturating_sub(HASH_SUFFIX)), sha8(name.as_bytes()))
}

/// Returns the readable part: lower-case letters and digits, with runs of anything else as one `-`, beginning with a
/// letter.
pub(crate) fn extract(name: &str, limit: usize) -> String {
    let mut piece = String::new();
    for c in name.to_lowercase().chars() {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            piece.push(c);
        } else if !piece.is_empty() && !piece.ends_with('-') {
            piece.push('-');
        }
    }
    piece.truncate(limit);
    piece.truncate(piece.trim_end_matches('-').len());
    match piece.bytes().next() {
        None => "x".to_owned(),
        Some(first) if first.is_ascii_lowercase() => piece,
        Some(_) => {
            piece.truncate(limit.saturating_sub(2));
            format!("x-{piece}")
        }
    }
}

pub(crate) fn is_object(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase()) && is_label(name)
}

pub(super) fn is_label(name: &str) -> bool {
    check_label(name).is_ok()
}

fn sha8(bytes: &[u8]) -> String {
    Digest::sha256(bytes).short_hex(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extract_gives_a_slug_that_starts_with_a_letter() {
        assert_eq!(extract("9z9", 37), "x-9z9");
        assert_eq!(extract("___", 37), "x");
        assert_eq!(extract("-a-b-", 37), "a-b");
        assert_eq!(extract("abc-def", 4), "abc");
    }

    #[test]
    fn escape_does_not_pad() {
        assert_eq!(escape("nl\n"), "nl-a");
        assert_eq!(escape("\u{4}1"), escape("A"));
    }

    #[test]
    fn a_different_split_of_the_same_letters_gives_another_slug() {
        assert_ne!(multi(&["ab", "c"], FIELD), multi(&["a", "bc"], FIELD));
    }
}
