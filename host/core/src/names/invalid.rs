//! Why a string is not a name.

use std::fmt;

/// How much of a refused value is repeated in the message, in characters.
const EXCERPT: usize = 64;

/// A string that is not the kind of name it was given as: says which kind, which value, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {} {problem}", Excerpt(value))]
pub struct InvalidName {
    /// What the value was meant to be, as a reader would say it: `username`, `object name`.
    pub kind: &'static str,
    /// The refused value, whole.
    pub value: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// The rule that a refused name breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Nothing was given where something is needed.
    #[error("is empty")]
    Empty,
    /// Longer than `limit` bytes.
    #[error("is {length} bytes long; at most {limit} are allowed")]
    TooLong {
        /// The value's length in bytes of UTF-8.
        length: usize,
        /// The most that is allowed.
        limit: usize,
    },
    /// Holds a control character (Unicode category Cc).
    #[error("contains the control character U+{:04X}", u32::from(*.0))]
    Control(char),
    /// Holds a character that is not allowed here.
    #[error("contains {0:?}, which is not allowed")]
    Forbidden(char),
    /// Is `.` or `..`, which would be a step in a path.
    #[error("is a path step")]
    PathStep,
    /// Starts or ends with white space.
    #[error("starts or ends with white space")]
    OuterSpace,
    /// Is not of the needed shape; the text says the shape.
    #[error("must be {0}")]
    Shape(&'static str),
}

/// Quotes a value, shortened: a message must stay readable when someone sends a megabyte.
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
