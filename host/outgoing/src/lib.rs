//! The HTTP client for other services: identity providers, JupyterHub, registries, collectors.
//!
//! All bodies of answers that the service reads are read here, with a limit: a compromised server may answer without
//! end. Only the commands, which read answers of the service itself, do without.

pub mod document;

use std::time::Duration;

use bytes::Bytes;
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Response};
use serde::de::DeserializeOwned;
use tokio_rustls::rustls::crypto::ring;
use wasmspawner_core::config::BaseUrl;

/// Builds a client for the service at `url`, with `timeout` for each request. It trusts the system's certificate
/// authorities. On a system without any, services can still be reached over plain HTTP.
pub fn client(url: &BaseUrl, timeout: Duration) -> reqwest::Result<Client> {
    builder(url.as_str().starts_with("http://"), timeout).build()
}

/// Returns the builder of a client, with `timeout` for each request. With `plain`, the client supports plain HTTP only.
/// The client does not follow redirects: the server could lead the service, and the content of its requests, to another
/// host.
pub fn builder(plain: bool, timeout: Duration) -> ClientBuilder {
    // A process has one cryptography provider. If one is installed already, this call fails and the installed one is
    // used.
    let _ = ring::default_provider().install_default();
    let builder = Client::builder().timeout(timeout).redirect(Policy::none()).referer(false);
    if plain { builder.tls_certs_only([]) } else { builder }
}

/// The reason that the body of an answer cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The body is larger than the limit.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
        /// The size in bytes: the `Content-Length`, or else the number of bytes received so far.
        size: u64,
    },
    /// The connection broke before the end of the body.
    #[error("the answer is not complete")]
    Broken(#[from] reqwest::Error),
}

/// The reason that the JSON in an answer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// The body cannot be read.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The body is not JSON, or does not have the expected fields.
    #[error("the answer is malformed: {0}")]
    Malformed(String),
}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        Self::Malformed(json_problem(&error))
    }
}

/// The maximum length, in bytes, of foreign text in a message.
const MAX_TEXT_BYTES: usize = 200;

/// Describes an error in foreign JSON without quoting its values, which may be secret and of any length.
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

/// Shortens foreign text to its first 200 bytes.
pub fn shortened(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    if end < text.len() { format!("{}...", &text[..end]) } else { text.to_owned() }
}

/// Returns the innermost cause of an error. The outer ones say only that a request has failed.
pub fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    shortened(&cause.to_string())
}

/// Reads the body of an answer of at most `limit` bytes. Stops reading as soon as the body exceeds the limit.
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

/// Reads the JSON in an answer of at most `limit` bytes.
pub async fn json<T: DeserializeOwned>(answer: Response, limit: usize) -> Result<T, JsonError> {
    Ok(serde_json::from_slice(&body(answer, limit).await?)?)
}

/// Returns a URL in the form that people may see: without user, password and query. Some services take tokens in the
/// query (`?private_token=...`).
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
        assert_eq!(shortened(&"ä".repeat(500)).len(), MAX_TEXT_BYTES + 3);
    }

    #[test]
    fn a_client_can_be_made_for_http_and_https() {
        for url in ["http://hub:8081/hub/api", "https://hub.example.org/hub/api"] {
            let url = BaseUrl::try_from(url.to_owned()).unwrap();
            assert!(client(&url, Duration::from_secs(1)).is_ok(), "{}", url.as_str());
        }
    }
}
