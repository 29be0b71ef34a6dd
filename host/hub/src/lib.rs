//! A client of JupyterHub's API: asks which servers and users the Hub knows, with the service's own token.

mod error;
mod user;

pub use error::HubError;
pub use user::{HubUser, OwnerKind};

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION};
use http::{HeaderMap, StatusCode};
use reqwest::{Client, RequestBuilder, Response, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tracing::Instrument;
use wasmspawner_core::config::{BaseUrl, Hub};
use wasmspawner_core::lifecycle::forgotten::{HubServers, Listing, UserPage, missing_scopes};
use wasmspawner_core::names::Username;
use wasmspawner_core::values::secret::SecretString;

use wasmspawner_files::secret_file::exposed_mode;
use wasmspawner_outgoing::{self as outgoing, BodyError, JsonError, innermost};
use wasmspawner_tasks::turns::Turns;
use wasmspawner_telemetry::trace;

/// The media type that asks for a paginated answer (JupyterHub 2.2 and later). Without it, the Hub answers with one
/// list, which it may cut off.
const PAGES: &str = "application/jupyterhub-pagination+json";
/// Users per page. A Hub with a lower limit answers with smaller pages and says so.
const PAGE: usize = 200;
/// The largest answer that is read, in bytes: a page of users with all their servers.
const ANSWER_BYTES: usize = 16 << 20;
/// The largest answer about one user, in bytes, including the data that the authenticator has stored.
const USER_BYTES: usize = 4 << 20;
/// The most questions about users at any one time.
const USERS_AT_ONCE: usize = 16;
/// The time after which the Hub is stuck, if no question about a user is answered.
const STUCK_AFTER: Duration = Duration::from_secs(5);
/// The time limit for all pages together.
const ALL_PAGES: Duration = Duration::from_mins(2);

/// The time for which it is remembered what the service's token may read.
const SCOPES_FOR: Duration = Duration::from_mins(1);
/// The Hub's scope for the data that an authenticator has stored about users.
const AUTH_STATE: &str = "admin:auth_state";

/// A client of the Hub's API, with the service's own token.
pub struct HubApi {
    client: Client,
    config: Hub,
    /// The time of the Hub's last answer to whether the token may read `auth_state`, and the answer.
    last_scopes: Mutex<Option<(Instant, bool)>>,
    /// Held by the caller that asks the Hub for that answer.
    asking_scopes: tokio::sync::Mutex<()>,
    /// Limits the questions about users.
    users: Turns,
}

/// The fields that are read from the Hub's answer about the owner of a token.
#[derive(Deserialize)]
struct TokenOwner {
    #[serde(default)]
    scopes: Vec<String>,
}

impl HubApi {
    /// Makes the client. The token is read from its file at every request.
    pub fn new(config: Hub) -> reqwest::Result<Self> {
        let client = outgoing::client(&config.api_url, config.timeout.unsigned_abs())?;
        Ok(Self {
            client,
            config,
            last_scopes: Mutex::default(),
            asking_scopes: tokio::sync::Mutex::default(),
            users: Turns::new(USERS_AT_ONCE, STUCK_AFTER),
        })
    }

    /// Returns all servers that the Hub knows as active. An incomplete list is an error.
    pub async fn servers(&self) -> Result<HubServers, HubError> {
        let all = tokio::time::timeout(ALL_PAGES, self.all_pages()).await;
        all.unwrap_or_else(|_| Err(self.unreachable(format!("no complete answer within {ALL_PAGES:?}"))))
    }

    async fn all_pages(&self) -> Result<HubServers, HubError> {
        let token = self.token().await?;
        let owner: TokenOwner = self.get("/user", &token).await?;
        let missing = missing_scopes(&owner.scopes);
        if !missing.is_empty() {
            return Err(HubError::MissingScopes { missing: missing.join(", ") });
        }
        let mut listing = Listing::default();
        let mut next = Some(0);
        while let Some(offset) = next {
            let path = format!("/users?state=active&offset={offset}&limit={PAGE}");
            let page: UserPage = self.get(&path, &token).await?;
            next = listing.add(page)?;
        }
        Ok(listing.servers())
    }

    /// True if the Hub may say more about a user to this service than to the user's own token. Also true while that is
    /// not known.
    pub async fn knows_more_of_users(&self) -> bool {
        let last = self.known_scopes();
        let is_fresh = |(asked, _): &(Instant, bool)| asked.elapsed() < SCOPES_FOR;
        if let Some((_, reads)) = last.filter(is_fresh) {
            return reads;
        }
        // One caller asks. The others use the last answer meanwhile, or wait for the first one.
        let _asking = match (self.asking_scopes.try_lock(), last) {
            (Ok(asking), _) => asking,
            (Err(_), Some((_, reads))) => return reads,
            (Err(_), None) => self.asking_scopes.lock().await,
        };
        if let Some((_, reads)) = self.known_scopes().filter(is_fresh) {
            return reads;
        }
        let asked = async { self.get::<TokenOwner>("/user", &self.token().await?).await };
        let reads = match asked.await {
            Ok(owner) => owner.scopes.iter().any(|scope| scope.split('!').next() == Some(AUTH_STATE)),
            Err(error) => {
                tracing::debug!(%error, "it is not known what the service's token may read");
                true
            }
        };
        *self.last_scopes.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), reads));
        reads
    }

    fn known_scopes(&self) -> Option<(Instant, bool)> {
        *self.last_scopes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the Hub about a user. Returns `None` if the Hub does not know the user, or if the service may not read
    /// about users.
    pub async fn user(&self, user: &Username) -> Result<Option<HubUser>, HubError> {
        let url = user_url(&self.config.api_url, user)?;
        let Some(_turn) = self.users.take(async {}).await else {
            return Err(self.unreachable(format!("{USERS_AT_ONCE} questions about users have no answer yet")));
        };
        match self.get_url("/users/{name}", url, USER_BYTES, &self.token().await?).await {
            Ok(user) => Ok(Some(user)),
            Err(HubError::Answered { status: StatusCode::NOT_FOUND, .. }) => Ok(None),
            // The Hub gives this answer to an unknown token, and also to one without a scope for users.
            Err(error @ HubError::UnknownToken { .. }) => {
                tracing::warn!(%error, %user, "JupyterHub does not let this service read about a user");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn get<T: DeserializeOwned>(&self, path: &str, token: &SecretString) -> Result<T, HubError> {
        let url = parse_url(&self.config.api_url.join(path))?;
        let route = if path.starts_with("/users") { "/users" } else { "/user" };
        self.get_url(route, url, ANSWER_BYTES, token).await
    }

    async fn get_url<T: DeserializeOwned>(
        &self,
        route: &'static str,
        url: Url,
        limit: usize,
        token: &SecretString,
    ) -> Result<T, HubError> {
        let request = self.client.get(url).header(ACCEPT, PAGES);
        let request = request.header(AUTHORIZATION, format!("token {}", token.expose()));
        let response = traced(route, request).await.map_err(|error| self.unreachable(innermost(&error)))?;
        match response.status() {
            StatusCode::OK => outgoing::json(response, limit).await.map_err(|error| match error {
                JsonError::Body(BodyError::Broken(error)) => self.unreachable(innermost(&error)),
                JsonError::Body(BodyError::TooLarge { .. }) | JsonError::Malformed(_) => {
                    HubError::Malformed { problem: error.to_string() }
                }
            }),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(HubError::UnknownToken { path: self.config.token_file.clone() })
            }
            status => Err(HubError::Answered { url: self.url(), status }),
        }
    }

    /// Reads the token from its file. The file is read anew each time, because it may be replaced while the service
    /// runs.
    async fn token(&self) -> Result<SecretString, HubError> {
        let path = &self.config.token_file;
        let unreadable =
            |error: std::io::Error| HubError::Unreadable { path: path.clone(), problem: error.to_string() };
        if let Some(mode) = exposed_mode(&tokio::fs::metadata(path).await.map_err(unreadable)?) {
            return Err(HubError::Exposed { path: path.clone(), mode });
        }
        let text = tokio::fs::read_to_string(path).await.map_err(unreadable)?;
        let token = text.trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(HubError::NoToken { path: path.clone() });
        }
        Ok(SecretString::new(token))
    }

    fn unreachable(&self, problem: String) -> HubError {
        HubError::Unreachable { url: self.url(), problem }
    }

    fn url(&self) -> String {
        self.config.api_url.as_str().to_owned()
    }
}

/// Sends a request to the Hub as a part of the present trace, which continues there.
pub async fn traced(route: &'static str, request: RequestBuilder) -> reqwest::Result<Response> {
    let span = trace::hub_request(route);
    let sending = async {
        let mut headers = HeaderMap::new();
        trace::inject(&mut headers);
        request.headers(headers).send().await
    };
    let answer = sending.instrument(span.clone()).await;
    trace::answered(&span, answer.as_ref().ok().map(Response::status));
    answer
}

/// The address of a user at the Hub's API.
pub fn user_url(api_url: &BaseUrl, user: &Username) -> Result<Url, HubError> {
    let mut url = parse_url(&api_url.join("/users"))?;
    if let Ok(mut path) = url.path_segments_mut() {
        path.push(user.as_str());
    }
    Ok(url)
}

fn parse_url(url: &str) -> Result<Url, HubError> {
    Url::parse(url).map_err(|error| HubError::Malformed { problem: format!("{url}: {error}") })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use wasmspawner_core::config::ConfigFile;

    use super::*;

    fn hub(token_file: &Path) -> HubApi {
        let yaml = format!(
            "auth: {{modes: [static], static: {{tokens_file: /t}}}}\nhub: {{api_url: 'http://127.0.0.1:9', token_file: '{}'}}",
            token_file.display()
        );
        let file: ConfigFile = serde_saphyr::from_str(&yaml).unwrap();
        HubApi::new(file.validate().unwrap().hub.unwrap()).unwrap()
    }

    #[tokio::test]
    async fn an_unusable_token_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hub.token");
        for (text, mode, expected) in [
            (None, 0o600, "hub.token_file: cannot read"),
            (Some("secret\n"), 0o640, "has mode 0640"),
            (Some(" \n"), 0o600, "holds no token"),
            (Some("two\nlines"), 0o600, "holds no token"),
            (Some("secret\n"), 0o600, ""),
        ] {
            if let Some(text) = text {
                std::fs::write(&file, text).unwrap();
                std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            }
            match hub(&file).token().await {
                Ok(token) => assert_eq!((token.expose(), expected), ("secret", "")),
                Err(error) => {
                    assert!(!expected.is_empty() && error.to_string().contains(expected), "{error}");
                }
            }
        }
    }
}
