//! Text that must not be seen.

use std::fmt;

/// A credential. It has no `Display` and no `Serialize`, and its `Debug` says only that it is there, so that it
/// reaches a log or an answer by no accident.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct SecretString(String);

impl SecretString {
    /// Takes the credential in.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The credential itself: for building a Secret or a request, nothing else.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_says_nothing() {
        assert_eq!(format!("{:?}", SecretString::new("s3cret")), "<redacted>");
    }
}
