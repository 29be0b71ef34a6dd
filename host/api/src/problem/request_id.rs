//! The id of a request. It is in the answer and in every log line about the request.

use http::{HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

/// The header that carries the id, in requests and in answers.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that is accepted from a caller, in bytes.
const MAX_REQUEST_ID_BYTES: usize = 64;

/// A request id: ASCII letters, digits, `-`, `_` and `.` only, so that it needs no escaping in a log or a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestId(String);

impl RequestId {
    /// Returns the id in the request's header if it is valid; otherwise a new one.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
        headers
            .get(HEADER)
            .map(HeaderValue::as_bytes)
            .filter(|id| (1..=MAX_REQUEST_ID_BYTES).contains(&id.len()) && id.iter().copied().all(plain))
            .map_or_else(
                || Self(Uuid::now_v7().to_string()),
                |id| Self(String::from_utf8_lossy(id).into_owned()),
            )
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the id as a header value; never `None`, because an id has only characters that a header allows.
    pub(crate) fn to_header(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.0).ok()
    }

    #[cfg(test)]
    pub(crate) fn from_static(id: &'static str) -> Self {
        Self(id.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_short_plain_request_id_of_a_client_is_kept() {
        let long = "x".repeat(65);
        for (given, taken) in
            [("abc-1.2_3", true), ("", false), ("a b", false), ("a\"b", false), (&long, false)]
        {
            let headers = [(HEADER, HeaderValue::from_str(given).unwrap())].into_iter().collect();
            assert_eq!(RequestId::from_headers(&headers).as_str() == given, taken, "{given:?}");
        }
        assert_ne!(RequestId::from_headers(&HeaderMap::new()), RequestId::from_headers(&HeaderMap::new()));
    }

    proptest::proptest! {
        #[test]
        fn any_header_gives_an_id_that_a_header_can_carry(value: Vec<u8>) {
            let headers = HeaderValue::from_bytes(&value).map(|value| HeaderMap::from_iter([(HEADER, value)]));
            let id = RequestId::from_headers(&headers.unwrap_or_default());
            proptest::prop_assert!(id.to_header().is_some() && (1..=MAX_REQUEST_ID_BYTES).contains(&id.as_str().len()));
        }
    }
}
