//! Requests to one repository of a registry. The registry is not trusted, so all answers are read up to a limit.

use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LINK, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_auth::ChallengeParser;
use oci_client::Reference;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Response, Url};
use serde::Deserialize;
use wasmspawner_core::config::RegistriesConfig;
use wasmspawner_core::values::digest::Digest;

use super::credentials::{Credentials, Login};
use super::error::{RegistryError, Setting};
use wasmspawner_outgoing::{self as outgoing, BodyError};

/// The maximum size of a manifest, in bytes. Other clients use the same limit.
const MANIFEST: u64 = 4 << 20;
/// The maximum size of a page of tags, in bytes. Some registries send more than the tags, and all of them at once.
const PAGE: u64 = 8 << 20;
/// The maximum size of an answer with a token, in bytes.
const TOKEN: u64 = 64 << 10;

/// The accepted media types of manifests.
const MANIFEST_TYPES: &str = "application/vnd.oci.image.manifest.v1+json, \
                              application/vnd.oci.image.index.v1+json, \
                              application/vnd.docker.distribution.manifest.v2+json, \
                              application/vnd.docker.distribution.manifest.list.v2+json";

/// The kind of access to a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// The body of a request, with its media type.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) media_type: &'static str,
    pub(super) bytes: Bytes,
}

/// A connection to one repository.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    http: Client,
    /// The URL of the repository, up to its name.
    url: String,
    repository: String,
    access: Access,
    login: Option<Login>,
    /// The hosts that are reached over plain HTTP.
    plain_http: Arc<[String]>,
    /// The authorization that the registry requested. Clones share it, so that a renewal applies to all of them.
    authorization: Arc<RwLock<Option<HeaderValue>>>,
}

impl Connection {
    /// Creates a connection to the repository of the reference. A registry with TLS is reached only over TLS, and so
    /// are the hosts that it redirects to and its token service. A registry without TLS can lead only to hosts without
    /// TLS that the configuration lists: services on link-local addresses speak plain HTTP.
    pub(super) fn new(
        reference: &Reference,
        config: &RegistriesConfig,
        access: Access,
    ) -> Result<Self, RegistryError> {
        let registry = reference.resolve_registry();
        let plain = config.plain_http.iter().any(|listed| listed == registry);
        let mut builder = outgoing::builder(plain, config.timeout.unsigned_abs());
        let listed: Arc<[String]> = config.plain_http.as_slice().into();
        builder = builder.redirect(redirects(Arc::clone(&listed))).https_only(!plain);
        if let Some(path) = config.ca_file.as_ref().filter(|_| !plain) {
            let wrong = |problem: String| RegistryError::File {
                setting: Setting::CaFile,
                path: path.clone(),
                problem,
            };
            let pem = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
            let certificates =
                Certificate::from_pem_bundle(&pem).map_err(|error| wrong(error.to_string()))?;
            builder = builder.tls_certs_merge(certificates);
        }
        let login = match &config.credentials_file {
            Some(path) => Credentials::read(path)?.login(registry, reference.repository()),
            None => None,
        };
        let scheme = if plain { "http" } else { "https" };
        Ok(Self {
            http: builder.build()?,
            url: format!("{scheme}://{registry}/v2/{}", reference.repository()),
            repository: reference.repository().to_owned(),
            access,
            login,
            plain_http: listed,
            authorization: Arc::default(),
        })
    }

    /// Reads the manifest with this tag or digest.
    pub(super) async fn manifest(&self, name: &str) -> Result<Bytes, RegistryError> {
        let answer = self.get(&format!("manifests/{name}")).await?;
        let manifest = limited(answer, MANIFEST).await?;
        // No tag has a colon.
        if name.contains(':') { with_digest(name, manifest) } else { Ok(manifest) }
    }

    /// Returns the digest of the manifest with this tag, as the registry states it, or `None` if the registry does not.
    pub(super) async fn announced_digest(&self, tag: &str) -> Result<Option<String>, RegistryError> {
        let answer = self.request(Method::HEAD, &format!("manifests/{tag}")).await?;
        let digest = answer.headers().get("docker-content-digest");
        Ok(digest.and_then(|digest| digest.to_str().ok()).map(str::to_owned))
    }

    /// Reads a page of the list of tags. Returns it with the query of the next page.
    pub(super) async fn tags(&self, query: &str) -> Result<(Bytes, Option<String>), RegistryError> {
        let answer = self.get(&format!("tags/list?{query}")).await?;
        let next = next_page(answer.headers());
        Ok((limited(answer, PAGE).await?, next))
    }

    /// Reads the list of artifacts that refer to the manifest with this digest.
    pub(super) async fn referrers(&self, digest: &Digest) -> Result<Bytes, RegistryError> {
        limited(self.get(&format!("referrers/{digest}")).await?, MANIFEST).await
    }

    /// Reads the file with this digest, of at most `limit` bytes.
    pub(super) async fn file(&self, digest: &str, limit: u64) -> Result<Bytes, RegistryError> {
        let answer = self.get(&format!("blobs/{digest}")).await?;
        with_digest(digest, limited(answer, limit).await?)
    }

    /// Returns the URL of a part of the repository.
    pub(super) fn url(&self, path: &str) -> Result<Url, RegistryError> {
        Url::parse(&format!("{}/{path}", self.url))
            .map_err(|error| RegistryError::unusable(format!("the reference makes no URL: {error}")))
    }

    async fn get(&self, path: &str) -> Result<Response, RegistryError> {
        self.request(Method::GET, path).await
    }

    async fn request(&self, method: Method, path: &str) -> Result<Response, RegistryError> {
        let answer = self.answer(method, &self.url(path)?, None).await?;
        self.good(answer, StatusCode::OK)
    }

    /// Sends a request. If the registry refuses it, repeats it with the authorization that the registry requests:
    /// tokens expire after some minutes.
    pub(super) async fn answer(
        &self,
        method: Method,
        url: &Url,
        content: Option<&Content>,
    ) -> Result<Response, RegistryError> {
        let answer = self.ask(method.clone(), url, content).await?;
        if answer.status() != StatusCode::UNAUTHORIZED || !self.is_of_registry(url) {
            return Ok(answer);
        }
        let authorization = self.authorize(answer.headers()).await?;
        *self.authorization.write().unwrap_or_else(PoisonError::into_inner) = Some(authorization);
        self.ask(method, url, content).await
    }

    async fn ask(
        &self,
        method: Method,
        url: &Url,
        content: Option<&Content>,
    ) -> Result<Response, RegistryError> {
        let mut request = self.http.request(method, url.clone()).header(ACCEPT, MANIFEST_TYPES);
        let authorization = self.authorization.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(authorization) = authorization.filter(|_| self.is_of_registry(url)) {
            request = request.header(AUTHORIZATION, authorization);
        }
        if let Some(content) = content {
            request = request.header(CONTENT_TYPE, content.media_type).body(content.bytes.clone());
        }
        Ok(request.send().await?)
    }

    /// Returns true if the URL belongs to the registry itself, and not to another host that the registry named. Only
    /// the registry receives credentials.
    fn is_of_registry(&self, url: &Url) -> bool {
        self.url("").is_ok_and(|own| own.origin() == url.origin())
    }

    /// Returns the answer if it has the expected status, and the matching error otherwise.
    pub(super) fn good(&self, answer: Response, expected: StatusCode) -> Result<Response, RegistryError> {
        match answer.status() {
            status if status == expected => Ok(answer),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(RegistryError::Refused { login: self.login.is_some() })
            }
            StatusCode::NOT_FOUND => Err(RegistryError::NotFound),
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                Err(RegistryError::away(format!("its answer has the status {status}")))
            }
            status => Err(RegistryError::unusable(format!("its answer has the status {status}"))),
        }
    }

    /// Returns the authorization that the registry requests in its refusal: a token of its token service, or the login
    /// itself.
    async fn authorize(&self, headers: &HeaderMap) -> Result<HeaderValue, RegistryError> {
        let refused = || RegistryError::Refused { login: self.login.is_some() };
        let challenges =
            headers.get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok()).ok_or_else(refused)?;
        let challenges: Vec<_> = ChallengeParser::new(challenges).filter_map(Result::ok).collect();
        let offered = |scheme: &str| challenges.iter().find(|one| one.scheme.eq_ignore_ascii_case(scheme));
        if let Some(bearer) = offered("Bearer") {
            let parameter = |name: &str| {
                let found = bearer.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
                found.map(|(_, value)| value.to_unescaped())
            };
            let realm = parameter("realm").ok_or_else(refused)?;
            return self.token(&realm, parameter("service")).await;
        }
        let login = self.login.as_ref().filter(|_| offered("Basic").is_some()).ok_or_else(refused)?;
        sensitive(&login.basic())
    }

    async fn token(&self, realm: &str, service: Option<String>) -> Result<HeaderValue, RegistryError> {
        /// The answer of a token service. Services use one name or the other.
        #[derive(Deserialize)]
        struct Token {
            token: Option<String>,
            access_token: Option<String>,
        }
        let actions = match self.access {
            Access::Read => "pull",
            Access::Write => "pull,push",
        };
        let scope = format!("repository:{}:{actions}", self.repository);
        let query: Vec<(&str, String)> =
            service.map(|service| ("service", service)).into_iter().chain([("scope", scope)]).collect();
        let realm = Url::parse(realm)
            .ok()
            .filter(|url| may_be_asked(url, &self.plain_http))
            .ok_or_else(|| RegistryError::unusable(ELSEWHERE))?;
        let mut request = self.http.get(realm).query(&query);
        if let Some(login) = &self.login {
            request = request.header(AUTHORIZATION, sensitive(&login.basic())?);
        }
        let answer = self.good(request.send().await?, StatusCode::OK)?;
        let answer: Token = serde_json::from_slice(&limited(answer, TOKEN).await?)
            .map_err(|_| RegistryError::unusable("the service for tokens has sent none"))?;
        match answer.token.or(answer.access_token) {
            Some(token) => sensitive(&format!("Bearer {token}")),
            None => Err(RegistryError::unusable("the service for tokens has sent none")),
        }
    }
}

/// The reason that a registry is not followed to another host.
const ELSEWHERE: &str = "it names another host without TLS that is not in registries.plain_http";

/// Returns true for a URL with TLS, or of a host that is listed as one without.
fn may_be_asked(url: &Url, plain_http: &[String]) -> bool {
    let authority = || match (url.host_str().unwrap_or_default(), url.port()) {
        (host, Some(port)) => format!("{host}:{port}"),
        (host, None) => host.to_owned(),
    };
    url.scheme() == "https" || plain_http.contains(&authority())
}

/// Returns the policy for redirects. Registries store files on other hosts, and redirect to them over a few hosts at
/// most.
fn redirects(plain_http: Arc<[String]>) -> Policy {
    Policy::custom(move |attempt| {
        if may_be_asked(attempt.url(), &plain_http) {
            Policy::default().redirect(attempt)
        } else {
            attempt.error(ELSEWHERE)
        }
    })
}

/// Returns the query of the URL in a header such as `Link: </v2/lab/tags/list?last=b&n=100>; rel="next"`. Ignores the
/// rest of the URL: the next page belongs to the same list, wherever the registry points.
fn next_page(headers: &HeaderMap) -> Option<String> {
    let links = headers.get_all(LINK).iter().filter_map(|link| link.to_str().ok());
    let mut links = links.flat_map(|line| line.split(", <"));
    let next = links.find(|link| link.contains("rel=\"next\"") || link.contains("rel=next"))?;
    let (url, _) = next.trim_start_matches('<').split_once('>')?;
    url.split_once('?').map(|(_, query)| query.to_owned())
}

/// Creates a header value that is not logged.
fn sensitive(text: &str) -> Result<HeaderValue, RegistryError> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| RegistryError::unusable("a credential has characters that no header can have"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns the bytes if they have the requested digest.
fn with_digest(digest: &str, bytes: Bytes) -> Result<Bytes, RegistryError> {
    if Digest::sha256(&bytes).to_string() == digest {
        Ok(bytes)
    } else {
        Err(RegistryError::unusable("the registry has sent something else than was asked for"))
    }
}

/// Reads the body of an answer, of at most `limit` bytes.
pub(super) async fn limited(answer: Response, limit: u64) -> Result<Bytes, RegistryError> {
    let bytes = usize::try_from(limit).unwrap_or(usize::MAX);
    outgoing::body(answer, bytes).await.map_err(|error| match error {
        BodyError::TooLarge { size, .. } => RegistryError::TooLarge { size, limit },
        BodyError::Broken(error) => error.into(),
    })
}
