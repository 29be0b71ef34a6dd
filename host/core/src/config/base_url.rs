//! Base URLs of other services.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An `http` or `https` URL without query or fragment, to which paths are appended. A trailing slash is dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct BaseUrl(String);

impl BaseUrl {
    /// The URL, without a trailing slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The URL of `path` below this one; `path` begins with a slash.
    pub fn join(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }
}

impl TryFrom<String> for BaseUrl {
    type Error = String;

    fn try_from(url: String) -> Result<Self, Self::Error> {
        let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        let allowed = |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '#' | '@');
        match rest {
            Some(rest) if !rest.starts_with('/') && !rest.is_empty() && rest.chars().all(allowed) => {
                Ok(Self(url.trim_end_matches('/').to_owned()))
            }
            _ => Err(format!(
                "{url:?} is not a base URL: write http://HOST[:PORT][/PATH] or https://..., without credentials, query or fragment"
            )),
        }
    }
}

impl From<BaseUrl> for String {
    fn from(url: BaseUrl) -> Self {
        url.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trailing_slash_makes_no_difference() {
        for url in ["http://hub:8081/hub/api", "http://hub:8081/hub/api/"] {
            assert_eq!(
                BaseUrl::try_from(url.to_owned()).unwrap().join("/user"),
                "http://hub:8081/hub/api/user"
            );
        }
    }

    #[test]
    fn text_that_is_not_an_http_base_url_is_refused() {
        for url in
            ["", "hub:8081", "ftp://hub", "http://", "http:///x", "https://a?b", "http://u:p@h", "http://a b"]
        {
            assert!(BaseUrl::try_from(url.to_owned()).is_err(), "{url:?}");
        }
    }
}
