//! The bearer token in a request's headers.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use wasmspawner_core::values::secret::SecretString;

use super::AuthError;

/// The size limit of a token, in bytes. JWTs of large sites have a few thousand.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// Returns the token of `Authorization: Bearer TOKEN` or of JupyterHub's own `Authorization: token TOKEN`.
pub(crate) fn token(headers: &HeaderMap) -> Result<SecretString, AuthError> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let header = given.next().ok_or(AuthError::Missing)?;
    let (scheme, token) =
        header.to_str().ok().and_then(|header| header.split_once(' ')).ok_or(AuthError::Malformed)?;
    let known = scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("token");
    let token = token.trim();
    if given.next().is_some()
        || !known
        || token.is_empty()
        || token.len() > MAX_TOKEN_BYTES
        || token.contains(' ')
    {
        return Err(AuthError::Malformed);
    }
    Ok(SecretString::new(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_schemes_bearer_and_token_are_accepted() {
        for (header, expected) in [
            ("Bearer abc", Ok("abc")),
            ("bearer  abc ", Ok("abc")),
            ("token abc", Ok("abc")),
            ("Basic abc", Err(AuthError::Malformed)),
            ("Bearer", Err(AuthError::Malformed)),
            ("Bearer ", Err(AuthError::Malformed)),
            ("Bearer a b", Err(AuthError::Malformed)),
        ] {
            let headers = [(AUTHORIZATION, header.parse().unwrap())].into_iter().collect();
            let actual = token(&headers);
            assert_eq!(
                actual.as_ref().map(SecretString::expose).map_err(Clone::clone),
                expected,
                "{header:?}"
            );
        }
        assert_eq!(token(&HeaderMap::new()), Err(AuthError::Missing));
    }

    #[test]
    fn two_authorization_headers_are_refused() {
        let mut headers = HeaderMap::new();
        headers.append(AUTHORIZATION, "Bearer a".parse().unwrap());
        headers.append(AUTHORIZATION, "Bearer b".parse().unwrap());
        assert_eq!(token(&headers), Err(AuthError::Malformed));
    }

    proptest::proptest! {
        #[test]
        fn any_header_is_a_token_without_spaces_or_none(values: Vec<Vec<u8>>) {
            let values = values.iter().filter_map(|value| http::HeaderValue::from_bytes(value).ok());
            let headers: HeaderMap = values.map(|value| (AUTHORIZATION, value)).collect();
            if let Ok(token) = token(&headers) {
                proptest::prop_assert!(!token.expose().is_empty() && !token.expose().contains(' '));
            }
        }
    }
}
