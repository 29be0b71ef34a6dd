//! Patterns for names.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wildmatch::WildMatch;

/// A pattern in which `*` stands for any characters, also none, and `?` for one. All others stand for themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Glob(String);

impl Glob {
    /// Returns true if the pattern matches the whole text.
    pub fn matches(&self, text: &str) -> bool {
        WildMatch::new(&self.0).matches(text)
    }
}

impl From<&str> for Glob {
    fn from(pattern: &str) -> Self {
        Self(pattern.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything_and_a_question_mark_for_one_character() {
        for (pattern, text, fits) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "abc", true),
            ("w_*", "w_2026_40", true),
            ("w_*", "d_2026_10_05", false),
            ("w_????_??", "w_2026_40", true),
            ("w_????_??", "w_2026_4", false),
            ("*-gpu*", "r1-gpu", true),
            ("*-gpu*", "r1-cpu", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("a.c", "abc", false),
        ] {
            assert_eq!(Glob::from(pattern).matches(text), fits, "{pattern:?} {text:?}");
        }
        assert!(!Glob::from("a*a*a*a*a*a*a*b").matches(&"a".repeat(200)), "and quickly");
    }
}
