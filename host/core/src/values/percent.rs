//! Percent-encoding (RFC 3986, section 2.1).

use std::fmt::Write as _;

/// Percent-encodes every byte except unreserved characters and those in `also`.
pub fn percent_encoded(text: &str, also: &[u8]) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || also.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}
