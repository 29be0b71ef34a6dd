//! The addresses of an OpenID Connect provider.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::BaseUrl;

/// The identifier of an OpenID Connect provider: an `http` or `https` URL, which tokens repeat letter by letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Issuer(String);

/// Where a provider publishes its keys: an `http` or `https` URL without credentials or fragment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct KeySetUrl(String);

impl Issuer {
    /// The identifier as it is written in the file; a slash at its end counts.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The URL of the provider's description (OpenID Connect Discovery 1.0, section 4.1).
    pub fn description_url(&self) -> String {
        format!("{}/.well-known/openid-configuration", self.0.trim_end_matches('/'))
    }

    /// True when the provider's description may name this URL. A provider with `https` must not send the service to
    /// keys that somebody on the network could replace.
    pub fn may_publish_at(&self, keys: &KeySetUrl) -> bool {
        keys.is_https() || !self.0.starts_with("https://")
    }
}

impl KeySetUrl {
    /// The URL.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn is_https(&self) -> bool {
        self.0.starts_with("https://")
    }
}

impl TryFrom<String> for Issuer {
    type Error = String;

    fn try_from(url: String) -> Result<Self, Self::Error> {
        BaseUrl::try_from(url.clone()).map(|_| Self(url))
    }
}

impl TryFrom<String> for KeySetUrl {
    type Error = String;

    fn try_from(url: String) -> Result<Self, Self::Error> {
        let (path, query) = url.split_once('?').unwrap_or((&url, ""));
        BaseUrl::try_from(path.to_owned())?;
        if query.chars().all(|c| c.is_ascii_graphic() && c != '#') {
            return Ok(Self(url));
        }
        Err(format!("{url:?} has a query with spaces, a fragment, or letters that are not ASCII"))
    }
}

impl From<Issuer> for String {
    fn from(issuer: Issuer) -> Self {
        issuer.0
    }
}

impl From<KeySetUrl> for String {
    fn from(url: KeySetUrl) -> Self {
        url.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issuer(url: &str) -> Issuer {
        Issuer::try_from(url.to_owned()).unwrap()
    }

    fn keys(url: &str) -> Result<KeySetUrl, String> {
        KeySetUrl::try_from(url.to_owned())
    }

    #[test]
    fn the_description_is_below_the_issuer_whose_slash_counts_elsewhere() {
        for url in ["https://sso.example.org/realms/lab", "https://sso.example.org/realms/lab/"] {
            let expected = "https://sso.example.org/realms/lab/.well-known/openid-configuration";
            assert_eq!(issuer(url).description_url(), expected);
            assert_eq!(issuer(url).as_str(), url);
        }
    }

    #[test]
    fn keys_of_a_provider_with_https_come_over_https() {
        for (of, at, expected) in [
            ("https://sso.example.org", "https://keys.example.org/jwks", true),
            ("https://sso.example.org", "http://sso.example.org/jwks", false),
            ("http://sso:8080", "http://sso:8080/jwks", true),
            ("http://sso:8080", "https://sso/jwks", true),
        ] {
            assert_eq!(issuer(of).may_publish_at(&keys(at).unwrap()), expected, "{of} {at}");
        }
    }

    #[test]
    fn text_that_is_no_address_of_keys_is_refused() {
        assert!(keys("https://sso.example.org/keys?p=policy").is_ok());
        for url in [
            "file:///etc/passwd",
            "https://",
            "https://u:p@sso/keys",
            "https://sso/keys#x",
            "https://sso/k?a b",
        ] {
            assert!(keys(url).is_err(), "{url}");
        }
    }
}
