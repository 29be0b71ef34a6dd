//! Stores files and manifests in a repository.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use reqwest::{Response, Url};
use serde::Deserialize;
use wasmspawner_core::values::digest::Digest;

use super::RegistryError;
use super::connection::{Connection, Content, limited};

/// The maximum size of an error answer, in bytes.
const REFUSAL: u64 = 64 << 10;

/// The media type of a file while it is uploaded.
const ANY_FILE: &str = "application/octet-stream";

impl Connection {
    /// Stores a file, unless the repository already has it.
    pub(super) async fn upload(&self, digest: Digest, file: Bytes) -> Result<(), RegistryError> {
        let there = self.answer(Method::HEAD, &self.url(&format!("blobs/{digest}"))?, None).await?;
        if there.status() == StatusCode::OK {
            return Ok(());
        }
        let uploads = self.url("blobs/uploads/")?;
        let opened = self.answer(Method::POST, &uploads, None).await?;
        let opened = self.stored(opened, StatusCode::ACCEPTED).await?;
        let mut place = place(&uploads, opened.headers())?;
        place.query_pairs_mut().append_pair("digest", &digest.to_string());
        let content = Content { media_type: ANY_FILE, bytes: file };
        let uploaded = self.answer(Method::PUT, &place, Some(&content)).await?;
        self.stored(uploaded, StatusCode::CREATED).await.map(drop)
    }

    /// Stores a manifest under this tag.
    pub(super) async fn store_manifest(&self, tag: &str, manifest: Content) -> Result<(), RegistryError> {
        let digest = Digest::sha256(&manifest.bytes).to_string();
        let url = self.url(&format!("manifests/{tag}"))?;
        let answer = self.answer(Method::PUT, &url, Some(&manifest)).await?;
        let answer = self.stored(answer, StatusCode::CREATED).await?;
        let said = answer.headers().get("docker-content-digest").and_then(|said| said.to_str().ok());
        if said.is_some_and(|said| said != digest) {
            return Err(RegistryError::unusable("the registry has stored something else than it was sent"));
        }
        Ok(())
    }

    /// Checks the answer to a request that stores content.
    async fn stored(&self, answer: Response, expected: StatusCode) -> Result<Response, RegistryError> {
        let status = answer.status();
        let no_repository =
            "the registry has no such repository, and makes none by itself; make it there first";
        if status == StatusCode::NOT_FOUND {
            return Err(RegistryError::unusable(no_repository));
        }
        if !status.is_client_error()
            || matches!(
                status,
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS
            )
        {
            return self.good(answer, expected);
        }
        let code = limited(answer, REFUSAL).await.ok().and_then(|body| error_code(&body));
        let code = code.map(|code| format!(", {code}")).unwrap_or_default();
        Err(RegistryError::unusable(format!("the registry does not store it: {status}{code}")))
    }
}

/// Returns the URL to which the registry wants the file to be sent.
fn place(asked: &Url, headers: &HeaderMap) -> Result<Url, RegistryError> {
    let place = headers.get(header::LOCATION).and_then(|place| place.to_str().ok());
    let place = place.and_then(|place| asked.join(place).ok());
    place.ok_or_else(|| RegistryError::unusable("the registry does not say where it wants the file"))
}

/// Returns the code in the body of a refusal, such as `MANIFEST_INVALID`. The rest is not shown, because it is not
/// trusted.
fn error_code(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Refusal {
        errors: Vec<Reason>,
    }
    #[derive(Deserialize)]
    struct Reason {
        code: String,
    }
    let refusal: Refusal = serde_json::from_slice(body).ok()?;
    let code = refusal.errors.into_iter().next()?.code;
    let is_code = code.len() <= 40 && code.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    is_code.then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_says_where_it_wants_a_file() {
        let asked = Url::parse("https://registry.example.org/v2/site/policy/blobs/uploads/").unwrap();
        for (said, expected) in [
            (
                "/v2/site/policy/blobs/uploads/7?_state=a",
                "https://registry.example.org/v2/site/policy/blobs/uploads/7?_state=a",
            ),
            ("https://files.example.org/7", "https://files.example.org/7"),
        ] {
            let headers = HeaderMap::from_iter([(header::LOCATION, said.parse().unwrap())]);
            assert_eq!(place(&asked, &headers).unwrap().as_str(), expected);
        }
        assert!(place(&asked, &HeaderMap::new()).is_err());
    }

    #[test]
    fn only_the_code_of_a_refusal_is_shown() {
        let body =
            |code: &str| serde_json::json!({ "errors": [{ "code": code, "message": "x" }] }).to_string();
        assert_eq!(error_code(body("MANIFEST_INVALID").as_bytes()).as_deref(), Some("MANIFEST_INVALID"));
        for wrong in
            [body("\u{1b}[2J"), body(&"A".repeat(41)), "{\"errors\": []}".to_owned(), "<html>".to_owned()]
        {
            assert_eq!(error_code(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
