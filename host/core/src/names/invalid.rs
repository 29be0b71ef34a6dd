//! The error for a string that is not a valid name.

use std::fmt;

/// Largest number of characters of a refused value that a message repeats.
const EXCERPT: usize = 64;

/// A string that is not a valid name of its kind. The message contains the kind, the value and the rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {} {problem}", Excerpt(value))]
pub struct InvalidName {
    /// The kind of name, as messages write it: `username`, `object name`.
    pub kind: &'static str,
    /// The whole refused value.
    pub value: String,
    /// The rule that it breaks.
    pub problem: Problem,
}

/// The rule that a refused name breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The value is empty.
    #[error("is empty")]
    Empty,
    /// The value is longer than `limit` bytes.
    #[error("is {length} bytes long; at most {limit} are allowed")]
    TooLong {
        /// The value's length in bytes of UTF-8.
        length: usize,
        /// The largest allowed length in bytes.
        limit: usize,
    },
    /// The value contains a control character (Unicode category Cc).
    #[error("contains the control character U+{:04X}", u32::from(*.0))]
    Control(char),
    /// The value contains a character that is not allowed.
    #[error("contains {0:?}, which is not allowed")]
    Forbidden(char),
    /// The value is `.` or `..`, which have a meaning in paths.
    #[error("is a path step")]
    PathStep,
    /// The value starts or ends with white space.
    #[error("starts or ends with white space")]
    OuterSpace,
    /// The value does not have the required form, which the text describes.
    #[error("must be {0}")]
    Shape(&'static str),
}

/// Displays a value, shortened, so that a message stays readable even if the value is a megabyte long.
struct Excerpt<'a>(&'a str);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(EXCERPT) {
            Some((end, _)) => write!(f, "{:?}...", &self.0[..end]),
            None => write!(f, "{:?}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_kind_value_and_problem() {
        let error = InvalidName { kind: "username", value: "a\nb".into(), problem: Problem::Control('\n') };
        assert_eq!(error.to_string(), r#"username "a\nb" contains the control character U+000A"#);
    }

    #[test]
    fn a_huge_value_is_shortened_in_the_message() {
        let problem = Problem::TooLong { length: 100_000, limit: 255 };
        let error = InvalidName { kind: "username", value: "ü".repeat(50_000), problem };
        assert!(error.to_string().len() < 250, "{error}");
    }
}
