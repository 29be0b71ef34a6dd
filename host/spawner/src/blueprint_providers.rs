//! Reads the blueprints of repositories and of users from the providers of the site. Their answers are not trusted:
//! they may be of any size, slow, or no blueprint at all.

use std::sync::Arc;
use std::time::Duration;

use reqwest::StatusCode;
use tokio::sync::Semaphore;
use wasmspawner_core::config::ProviderConfig;
use wasmspawner_core::custom_resource::blueprint::BlueprintSpec;
use wasmspawner_core::values::secret::SecretString;

use wasmspawner_files::yaml_problem;
use wasmspawner_outgoing as outgoing;
use wasmspawner_outgoing::document::{DocumentError, DocumentRequest};

/// The largest blueprint, in bytes. It becomes a part of the lab's record.
const MAX_BLUEPRINT_BYTES: usize = 16 << 10;
/// The most blueprints that are read at a time. Other requests wait, and are refused when their time is over.
const AT_A_TIME: usize = 8;

/// A reader of blueprints. Clones share the limit on reads at a time.
#[derive(Debug, Clone)]
pub struct BlueprintProviders(Arc<Semaphore>);

/// The reason why there is no blueprint. URLs are without their query, because users read the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// The provider has no such blueprint.
    #[error("there is no blueprint at {0}")]
    None(String),
    /// The provider does not let the user have the blueprint.
    #[error("{0} does not let you read the blueprint ({1})")]
    Forbidden(String, u16),
    /// The provider's answer is not a document.
    #[error("{url} answers with {what}, and not with a blueprint")]
    NotADocument {
        /// The URL.
        url: String,
        /// A description of the answer.
        what: String,
    },
    /// The document is too large.
    #[error("the blueprint at {0} has more than 16 KiB")]
    TooLarge(String),
    /// The document is not a blueprint.
    #[error("the blueprint at {url} cannot be used: {problem}")]
    Invalid {
        /// The URL.
        url: String,
        /// The problem with the document.
        problem: String,
    },
    /// The provider does not answer in time, or not at all.
    #[error("{0} does not answer in time; try again later")]
    Unavailable(String),
}

impl Default for BlueprintProviders {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_A_TIME)))
    }
}

impl BlueprintProviders {
    /// Reads the blueprint at `url` from `provider`. `token` is the user's token, and is empty if there is none.
    pub async fn read(
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
            Ok(None) | Err(_) => Err(ProviderError::Unavailable(outgoing::shown(url))),
        }
    }
}

async fn fetch(
    provider: &ProviderConfig,
    url: &str,
    token: &SecretString,
    within: Duration,
) -> Result<String, ProviderError> {
    let token = Some(token).filter(|token| provider.send_token && !token.expose().is_empty());
    let request = DocumentRequest {
        url,
        token,
        accept: "application/yaml, text/plain",
        limit: MAX_BLUEPRINT_BYTES,
        within,
    };
    let not_a_document =
        |what: &str| ProviderError::NotADocument { url: outgoing::shown(url), what: what.to_owned() };
    let named = || outgoing::shown(url);
    request.read().await.map(|document| document.text).map_err(|error| match error {
        DocumentError::Unavailable(error) => {
            tracing::warn!(url = named(), %error, "a blueprint cannot be read");
            ProviderError::Unavailable(named())
        }
        DocumentError::Status(StatusCode::NOT_FOUND) => ProviderError::None(named()),
        DocumentError::Status(status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)) => {
            ProviderError::Forbidden(named(), status.as_u16())
        }
        DocumentError::Status(status) => not_a_document(&format!("the status {}", status.as_u16())),
        DocumentError::Redirection => not_a_document("a redirection"),
        DocumentError::WebPage => not_a_document("a web page"),
        DocumentError::NotText => not_a_document("something that is not text"),
        DocumentError::TooLarge(_) => ProviderError::TooLarge(named()),
    })
}

fn parse(url: &str, text: &str) -> Result<BlueprintSpec, ProviderError> {
    serde_saphyr::from_str(text).map_err(|error| {
        let problem = yaml_problem::in_one_line(&error);
        ProviderError::Invalid { url: outgoing::shown(url), problem }
    })
}
