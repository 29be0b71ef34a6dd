//! The forms of names.

use uuid::Uuid;

/// Letters and digits that make no words and are not mistaken for each other.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX: usize = 5;
/// Longest prefix that leaves room for the suffix within a DNS label.
const PREFIX: usize = 63 - SUFFIX;

/// A name with a random end.
pub(in crate::apiserver) fn generated_name(prefix: &str) -> String {
    let cut =
        prefix.char_indices().map(|(at, _)| at).chain([prefix.len()]).take_while(|at| *at <= PREFIX).last();
    let random = Uuid::new_v4();
    let suffix: String = random
        .as_bytes()
        .iter()
        .take(SUFFIX)
        .map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]))
        .collect();
    format!("{}{suffix}", &prefix[..cut.unwrap_or(0)])
}
