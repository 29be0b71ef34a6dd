//! The HTTP client for other services: identity providers, JupyterHub, registries, collectors.
//!
//! Nothing else in the service reads the body of an answer: whoever is asked may be compromised, and answer without end. The
//! commands read answers of the service itself.

pub mod document;

use std::time::Duration;

use bytes::Bytes;
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Response};
use serde::de::DeserializeOwned;
use tokio_rustls::rustls::crypto::ring;
use wasmspawner_core::config::BaseUrl;

/// A client for the service at `url`, which may take `timeout` to answer. The system's certificate authorities are
/// trusted; on a system without any, services can still be reached over plain HTTP.
pub fn client(url: &BaseUrl, timeout: Duration) -> reqwest::Result<Client> {
    builder(url.as_str().starts_with("http://"), timeout).build()
}

/// The builder of a client whose requests may take `timeout`. With `plain`, it is for plain HTTP only. It follows no redirects:
/// who is asked could lead the service, and what it says, to another host.
pub fn builder(plain: bool, timeout: Duration) -> ClientBuilder {
    // The process has one cryptography provider. If one is installed already, this call fails and that one is used.
    let _ = ring::default_provider().install_default();
    let builder = Client::builder().timeout(timeout).redirect(Policy::none()).referer(false);
    if plain { builder.tls_certs_only([]) } else { builder }
}

/// Why the body of an answer cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It is larger than it may be.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
        /// Its size as the sender says it, or as much as was received.
        size: u64,
    },
    /// It does not end as it should.
    #[error("the answer is not complete")]
    Broken(#[from] reqwest::Error),
}

/// Why the JSON in an answer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// The body cannot be read.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// It is no JSON, or another document.
    #[error("the answer is malformed: {0}")]
    Malformed(String),
}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        Self::Malformed(json_problem(&error))
    }
}

/// The longest text of somebody else in a message, in bytes.
const LONGEST_TEXT: usize = 200;

/// What is wrong with somebody else's JSON, without what it says there: that may be secret, and of any length.
pub fn json_problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let is_about_fields = text.starts_with("missing field") || text.starts_with("duplicate field");
    let problem = match text.rfind(", expected ") {
        _ if !error.is_data() || is_about_fields => &text,
        Some(at) => &text[at + ", ".len()..],
        None => return format!("a value cannot be used, at line {} column {}", error.line(), error.column()),
    };
    shortened(problem)
}

/// The beginning of somebody else's text.
pub fn shortened(text: &str) -> String {
    let end = text.floor_char_boundary(LONGEST_TEXT);
    if end < text.len() { format!("{}...", &text[..end]) } else { text.to_owned() }
}

/// The innermost cause, which says what has happened; the others say that a request has failed.
pub fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    shortened(&cause.to_string())
}

/// The body of an answer, of at most `limit` bytes. A larger one is not read to its end.
pub async fn body(mut answer: Response, limit: usize) -> Result<Bytes, BodyError> {
    if let Some(size) = answer.content_length().filter(|size| *size > limit as u64) {
        return Err(BodyError::TooLarge { limit, size });
    }
    let mut body = Vec::new();
    while let Some(part) = answer.chunk().await? {
        let size = body.len() + part.len();
        if size > limit {
            return Err(BodyError::TooLarge { limit, size: size as u64 });
        }
        body.extend_from_slice(&part);
    }
    Ok(body.into())
}

/// The JSON in an answer of at most `limit` bytes.
pub async fn json<T: DeserializeOwned>(answer: Response, limit: usize) -> Result<T, JsonError> {
    Ok(serde_json::from_slice(&body(answer, limit).await?)?)
}

/// A URL as people may see it: without a user and a password, and without its query, in which services take tokens
/// (`?private_token=...`).
pub fn shown(url: &str) -> String {
    let (plain, hidden) = match url.split_once(['?', '#']) {
        Some((plain, _)) => (plain, "?..."),
        None => (url, ""),
    };
    let Some((scheme, rest)) = plain.split_once("://") else { return format!("{plain}{hidden}") };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}{hidden}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_what_may_be_secret() {
        for (url, expected) in [
            ("https://git.example.org/a@b/c.yaml", "https://git.example.org/a@b/c.yaml"),
            ("https://u:p@git:8443/c?private_token=s3cret&x=/", "https://git:8443/c?..."),
            ("http://p@ss@host#s3cret", "http://host?..."),
            ("host/path?s3cret", "host/path?..."),
        ] {
            assert_eq!(shown(url), expected);
        }
    }

    #[test]
    fn a_problem_with_json_does_not_say_what_is_there() {
        #[derive(Debug, serde::Deserialize)]
        struct Answer {
            #[expect(dead_code, reason = "it is read to see whether it can be")]
            uid: u32,
        }
        for (text, expected) in [
            (r#"{"uid": "s3cret"}"#, "expected u32 at line 1 column 16"),
            (r#"{"uid": "x, expected s3cret"}"#, "expected u32 at line 1 column 28"),
            (r#"{"a": "s3cret"}"#, "missing field `uid` at line 1 column 15"),
            ("<html>s3cret", "expected value at line 1 column 1"),
        ] {
            assert_eq!(json_problem(&serde_json::from_str::<Answer>(text).unwrap_err()), expected);
        }
        let long = serde::de::Error::custom("s3cret".repeat(100));
        assert_eq!(json_problem(&long), "a value cannot be used, at line 0 column 0");
        assert_eq!(shortened(&"ä".repeat(500)).len(), LONGEST_TEXT + 3);
    }

    #[test]
    fn a_client_can_be_made_for_http_and_https() {
        for url in ["http://hub:8081/hub/api", "https://hub.example.org/hub/api"] {
            let url = BaseUrl::try_from(url.to_owned()).unwrap();
            assert!(client(&url, Duration::from_secs(1)).is_ok(), "{}", url.as_str());
        }
    }
}
