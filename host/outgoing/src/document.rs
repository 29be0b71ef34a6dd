//! Downloads documents from other services. The answers are not trusted: a document may be of any size, arrive slowly,
//! or be something else.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use wasmspawner_core::values::secret::SecretString;

use crate::{self as outgoing, BodyError};

/// A request for a document.
#[derive(Debug)]
pub struct DocumentRequest<'a> {
    /// The URL of the document.
    pub url: &'a str,
    /// The bearer token to send with the request.
    pub token: Option<&'a SecretString>,
    /// The accepted media types, for the header `Accept`.
    pub accept: &'static str,
    /// The largest accepted size, in bytes.
    pub limit: usize,
    /// The timeout of the whole request, including the body.
    pub within: Duration,
}

/// A document.
#[derive(Debug)]
pub struct Document {
    /// The content.
    pub text: String,
    /// The media type that the service sent; may be empty.
    pub media_type: String,
}

/// The reason that a document cannot be read. Messages do not contain the URL.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The service did not answer, or not in time.
    #[error("it does not answer: {}", outgoing::innermost(.0))]
    Unavailable(reqwest::Error),
    /// The status of the answer is not 200.
    #[error("it answers with the status {}", .0.as_u16())]
    Status(StatusCode),
    /// The service redirected to another URL. A redirect is not followed, because it could lead a token, or the
    /// service, to another host.
    #[error("it answers with a redirection, which is not followed")]
    Redirection,
    /// The answer is a web page, such as a login page.
    #[error("it answers with a web page")]
    WebPage,
    /// The document is too large.
    #[error("it is larger than {0} bytes")]
    TooLarge(usize),
    /// The document is not text in UTF-8.
    #[error("it is not text in UTF-8")]
    NotText,
}

impl DocumentRequest<'_> {
    /// Reads the document.
    pub async fn read(&self) -> Result<Document, DocumentError> {
        let unavailable = |error: reqwest::Error| DocumentError::Unavailable(error.without_url());
        let plain = self.url.starts_with("http://");
        let client = outgoing::builder(plain, self.within);
        let mut request = client.build().map_err(unavailable)?.get(self.url).header(ACCEPT, self.accept);
        if let Some(token) = self.token {
            request = request.bearer_auth(token.expose());
        }
        let answer = request.send().await.map_err(unavailable)?;
        match answer.status() {
            StatusCode::OK => {}
            status if status.is_redirection() => return Err(DocumentError::Redirection),
            status => return Err(DocumentError::Status(status)),
        }
        let media_type = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let media_type = media_type.unwrap_or_default().to_owned();
        if media_type.starts_with("text/html") {
            return Err(DocumentError::WebPage);
        }
        let bytes = outgoing::body(answer, self.limit).await.map_err(|error| match error {
            BodyError::Broken(error) => unavailable(error),
            BodyError::TooLarge { limit, .. } => DocumentError::TooLarge(limit),
        })?;
        let text = String::from_utf8(bytes.into()).map_err(|_| DocumentError::NotText)?;
        Ok(Document { text, media_type })
    }
}
