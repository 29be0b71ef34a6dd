use std::fmt;

/// The id of a recorded trace, as 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceId(u128);

impl From<u128> for TraceId {
    fn from(id: u128) -> Self {
        Self(id)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
