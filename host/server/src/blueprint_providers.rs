//! Reads the blueprints of repositories and of users from where the site says. What is read is not trusted: it may be of any
//! size, slow, or no blueprint at all.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{StatusCode, redirect};
use tokio::sync::Semaphore;
use wasmspawner_core::blueprint::BlueprintSpec;
use wasmspawner_core::config::ProviderConfig;
use wasmspawner_core::secret::SecretString;

use crate::{outgoing, yaml_problem};

/// The largest blueprint, in bytes. It becomes a part of the lab's record.
const LARGEST: usize = 16 << 10;
/// How many are read at a time. Others wait, and are refused when the time is over.
const AT_A_TIME: usize = 8;

/// Reads blueprints. Clones share what they may do at a time.
#[derive(Debug, Clone)]
pub struct BlueprintProviders(Arc<Semaphore>);

/// Why there is no blueprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// The provider has none.
    #[error("there is no blueprint at {0}")]
    None(String),
    /// The provider does not let the user have it.
    #[error("{0} does not let you read the blueprint ({1})")]
    Forbidden(String, u16),
    /// It answers with something else than a document.
    #[error("{url} answers with {what}, and not with a blueprint")]
    NotADocument {
        /// The URL.
        url: String,
        /// What it answers with.
        what: String,
    },
    /// The document is too large.
    #[error("the blueprint at {0} has more than 16 KiB")]
    TooLarge(String),
    /// The document is no blueprint.
    #[error("the blueprint at {url} cannot be used: {problem}")]
    Invalid {
        /// The URL.
        url: String,
        /// What is wrong.
        problem: String,
    },
    /// It does not answer in time, or not at all.
    #[error("{0} does not answer in time; try again later")]
    Unavailable(String),
}

impl Default for BlueprintProviders {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_A_TIME)))
    }
}

impl BlueprintProviders {
    /// Reads the blueprint at `url`, which `provider` has. `token` is the user's, and empty if there is none.
    pub(crate) async fn read(
        &self,
        provider: &ProviderConfig,
        url: &str,
        token: &SecretString,
        within: Duration,
    ) -> Result<BlueprintSpec, ProviderError> {
        let reading = async {
            let _permit = self.0.acquire().await.ok()?;
            Some(fetch(provider, url, token, within).await)
        };
        match tokio::time::timeout(within, reading).await {
            Ok(Some(read)) => read.and_then(|text| parse(url, &text)),
            Ok(None) | Err(_) => Err(ProviderError::Unavailable(url.to_owned())),
        }
    }
}

async fn fetch(
    provider: &ProviderConfig,
    url: &str,
    token: &SecretString,
    within: Duration,
) -> Result<String, ProviderError> {
    let unavailable = |error: reqwest::Error| {
        // Without its URL, which the message has already.
        tracing::warn!(url, error = %error.without_url(), "a blueprint cannot be read");
        ProviderError::Unavailable(url.to_owned())
    };
    let not_a_document =
        |what: &str| ProviderError::NotADocument { url: url.to_owned(), what: what.to_owned() };
    // Who redirects could lead the user's token, or the service, to another host.
    let client = outgoing::builder(provider.is_plain(), within).redirect(redirect::Policy::none());
    let mut request =
        client.build().map_err(unavailable)?.get(url).header(ACCEPT, "application/yaml, text/plain");
    if provider.send_token && !token.expose().is_empty() {
        request = request.bearer_auth(token.expose());
    }
    let answer = request.send().await.map_err(unavailable)?;
    let status = answer.status();
    match status {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND => return Err(ProviderError::None(url.to_owned())),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            return Err(ProviderError::Forbidden(url.to_owned(), status.as_u16()));
        }
        status if status.is_redirection() => return Err(not_a_document("a redirection")),
        status => return Err(not_a_document(&format!("the status {}", status.as_u16()))),
    }
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("text/html") {
        return Err(not_a_document("a web page"));
    }
    let (mut body, mut bytes) = (answer.bytes_stream(), Vec::new());
    while let Some(part) = body.next().await {
        bytes.extend_from_slice(&part.map_err(unavailable)?);
        if bytes.len() > LARGEST {
            return Err(ProviderError::TooLarge(url.to_owned()));
        }
    }
    String::from_utf8(bytes).map_err(|_| not_a_document("something that is not text"))
}

fn parse(url: &str, text: &str) -> Result<BlueprintSpec, ProviderError> {
    serde_saphyr::from_str(text).map_err(|error| {
        let problem = yaml_problem::in_one_line(&error);
        ProviderError::Invalid { url: url.to_owned(), problem }
    })
}
