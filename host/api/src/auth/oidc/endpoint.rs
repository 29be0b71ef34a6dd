//! The endpoint at which a provider publishes its keys.

use bytes::Bytes;
use http::StatusCode;
use reqwest::Client;
use serde::Deserialize;
use wasmspawner_core::config::auth::{Issuer, KeySetUrl, OidcAuth};

use super::key_set::KeySet;
use wasmspawner_outgoing::{self as outgoing, BodyError, json_problem, shortened};

/// The size limit for an answer, in bytes. Real answers have a few kilobytes.
const MAX_ANSWER_BYTES: usize = 256 * 1024;

/// Reads the provider's keys. Redirects are not followed: the keys come from the address in the configuration or in the
/// provider's description.
pub(super) struct Endpoint {
    client: Client,
    issuer: Issuer,
    keys: Option<KeySetUrl>,
}

/// The reasons for which the keys cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoKeys {
    /// There is no complete answer.
    #[error("there is no complete answer")]
    Request(#[from] reqwest::Error),
    /// The status of the answer is not a success.
    #[error("{url} answers with status {status}{}", if status.is_redirection() { "; configure the address that it leads to" } else { "" })]
    Status { url: String, status: StatusCode },
    /// The answer is too large.
    #[error("the answer has more than {MAX_ANSWER_BYTES} bytes")]
    TooLarge,
    /// The answer does not have the expected form.
    #[error("{url} does not answer with what it should: {problem}")]
    Malformed { url: String, problem: String },
    /// The description belongs to another provider.
    #[error(
        "{url} describes the issuer {found:?} and not {wanted:?}; auth.oidc.issuer has to be the same, letter by letter"
    )]
    OtherIssuer { url: String, found: String, wanted: String },
    /// The description contains an address without TLS.
    #[error("{url} says that the keys are at {keys:?}, which is not https")]
    NotHttps { url: String, keys: String },
}

/// The parts of a provider's description that the service reads (OpenID Connect Discovery 1.0, section 3).
#[derive(Deserialize)]
struct Description {
    issuer: String,
    jwks_uri: String,
}

impl Endpoint {
    pub(super) fn new(config: &OidcAuth) -> reqwest::Result<Self> {
        let mut urls = [Some(config.issuer.as_str()), config.jwks_url.as_ref().map(KeySetUrl::as_str)]
            .into_iter()
            .flatten();
        let plain = urls.all(|url| url.starts_with("http://"));
        let client = outgoing::builder(plain, config.timeout.unsigned_abs()).build()?;
        Ok(Self { client, issuer: config.issuer.clone(), keys: config.jwks_url.clone() })
    }

    /// Fetches the keys that the provider publishes now.
    pub(super) async fn key_set(&self) -> Result<KeySet, NoKeys> {
        let keys = if let Some(keys) = &self.keys { keys.clone() } else { self.described().await? };
        let json = self.get(keys.as_str()).await?;
        KeySet::parse(&json).map_err(|problem| NoKeys::Malformed { url: shortened(keys.as_str()), problem })
    }

    /// Returns the address of the keys, taken from the provider's description.
    async fn described(&self) -> Result<KeySetUrl, NoKeys> {
        let url = self.issuer.description_url();
        let json = self.get(&url).await?;
        let malformed = |problem: String| NoKeys::Malformed { url: url.clone(), problem };
        let Description { issuer, jwks_uri } =
            serde_json::from_slice(&json).map_err(|error| malformed(json_problem(&error)))?;
        if issuer != self.issuer.as_str() {
            let (found, wanted) = (shortened(&issuer), self.issuer.as_str().to_owned());
            return Err(NoKeys::OtherIssuer { url, found, wanted });
        }
        let keys = KeySetUrl::try_from(jwks_uri).map_err(|problem| malformed(shortened(&problem)))?;
        if !self.issuer.may_publish_at(&keys) {
            return Err(NoKeys::NotHttps { url, keys: shortened(keys.as_str()) });
        }
        Ok(keys)
    }

    async fn get(&self, url: &str) -> Result<Bytes, NoKeys> {
        let response = self.client.get(url).send().await?;
        if !response.status().is_success() {
            return Err(NoKeys::Status { url: shortened(url), status: response.status() });
        }
        outgoing::body(response, MAX_ANSWER_BYTES).await.map_err(|error| match error {
            BodyError::Broken(error) => NoKeys::Request(error),
            BodyError::TooLarge { .. } => NoKeys::TooLarge,
        })
    }
}
