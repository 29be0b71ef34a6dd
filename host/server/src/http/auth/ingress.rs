//! Authentication by a trusted ingress (Gafaelfawr).

use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, StatusCode};
use reqwest::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use wasmspawner_core::access::ScopeSet;
use wasmspawner_core::config::auth::{HeadersAuth, Identities, IngressHeader};
use wasmspawner_core::identity::{Group, Identity};
use wasmspawner_core::names::Username;
use wasmspawner_core::secret::SecretString;
use wasmspawner_core::token::TokenDigest;

use super::lookups::Lookups;
use super::{AuthError, AuthSetupError, Caller};
use crate::outgoing;

/// Trusts the headers of a trusted ingress, and asks Gafaelfawr for what they do not say.
pub(super) struct Ingress {
    client: Client,
    config: HeadersAuth,
    identities: Arc<Identities>,
    lookups: Lookups<KnownUser>,
}

/// What Gafaelfawr knows about a token and its user.
#[derive(Clone)]
struct KnownUser {
    user: UserInfo,
    scopes: ScopeSet,
}

/// The answer to `GET /auth/api/v1/user-info`.
#[derive(Clone, Deserialize)]
struct UserInfo {
    username: Username,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    email: Option<String>,
    #[serde(default)]
    uid: Option<u32>,
    #[serde(default)]
    gid: Option<u32>,
    #[serde(default)]
    groups: Option<Vec<Group>>,
}

/// The answer to `GET /auth/api/v1/token-info`.
#[derive(Deserialize)]
struct TokenInfo {
    #[serde(default)]
    scopes: Vec<String>,
}

impl Ingress {
    pub(super) fn new(config: HeadersAuth, identities: Arc<Identities>) -> Result<Self, AuthSetupError> {
        let client = outgoing::client(&config.url, config.timeout.unsigned_abs())?;
        let lookups = Lookups::new(config.cache.unsigned_abs());
        Ok(Self { client, config, identities, lookups })
    }

    pub(super) async fn caller(
        &self,
        headers: &HeaderMap,
        peer: Option<IpAddr>,
    ) -> Result<Caller, AuthError> {
        let trusted =
            peer.is_some_and(|peer| self.config.trusted_peers.iter().any(|range| range.contains(peer)));
        if !trusted {
            return Err(AuthError::UntrustedPeer);
        }
        let username = single_header(headers, "x-auth-request-user")?.ok_or(AuthError::Missing)?;
        let username =
            Username::parse(username).map_err(|error| AuthError::BadIngressHeader(error.to_string()))?;
        let token = SecretString::new(single_header(headers, "x-auth-request-token")?.unwrap_or_default());
        let known =
            if token.expose().is_empty() { None } else { Some(self.known_user(&username, &token).await?) };
        let scopes = self.scopes(headers, &username, known.as_ref())?;
        let identity = self.identity(headers, &username, known.map(|known| known.user))?;
        Ok(Caller { username, identity, scopes, token })
    }

    /// What Gafaelfawr knows about the token. The token must belong to `username`.
    async fn known_user(&self, username: &Username, token: &SecretString) -> Result<KnownUser, AuthError> {
        let known = self.lookups.get(TokenDigest::of(token.expose()), self.ask(token)).await?;
        if known.user.username != *username {
            return Err(AuthError::BadIngressHeader(
                "the token in X-Auth-Request-Token is another user's".into(),
            ));
        }
        Ok(known)
    }

    async fn ask(&self, token: &SecretString) -> Result<KnownUser, AuthError> {
        let (user, info) = futures::try_join!(
            self.get::<UserInfo>("/auth/api/v1/user-info", token),
            self.get::<TokenInfo>("/auth/api/v1/token-info", token),
        )?;
        let scopes = info.scopes.iter().filter_map(|scope| scope.parse().ok()).collect();
        Ok(KnownUser { user, scopes })
    }

    async fn get<T: DeserializeOwned>(&self, path: &str, token: &SecretString) -> Result<T, AuthError> {
        let request = self.client.get(self.config.url.join(path)).bearer_auth(token.expose());
        let response = request.send().await.map_err(unavailable)?;
        match response.status() {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => {
                Err(AuthError::UnknownToken)
            }
            status if status.is_success() => response.json().await.map_err(unavailable),
            status => Err(unavailable(status)),
        }
    }

    fn scopes(
        &self,
        headers: &HeaderMap,
        user: &Username,
        known: Option<&KnownUser>,
    ) -> Result<ScopeSet, AuthError> {
        let of_token = known.map(|known| known.scopes.clone()).unwrap_or_default();
        let from_header = self
            .trusted_header(headers, IngressHeader::Scopes, "x-auth-request-token-scopes")?
            .unwrap_or_default();
        let from_header = from_header.split(' ').filter_map(|scope| scope.parse().ok());
        Ok(self.config.scopes(user, of_token.into_iter().chain(from_header)))
    }

    fn identity(
        &self,
        headers: &HeaderMap,
        user: &Username,
        info: Option<UserInfo>,
    ) -> Result<Option<Identity>, AuthError> {
        let email =
            self.trusted_header(headers, IngressHeader::Email, "x-auth-request-email")?.map(str::to_owned);
        let groups =
            self.trusted_header(headers, IngressHeader::Groups, "x-auth-request-groups")?.unwrap_or_default();
        let mut identity = match info {
            Some(UserInfo { uid: Some(uid), gid, groups, email, name, .. }) => Identity {
                username: user.clone(),
                uid,
                // Gafaelfawr leaves `gid` out for users who have a primary group of their own, whose gid is the uid.
                gid: gid.unwrap_or(uid),
                groups: groups.unwrap_or_default(),
                email,
                display_name: name,
            },
            info => {
                let Some(mut identity) = self.identities.get(user) else { return Ok(None) };
                if let Some(info) = info {
                    identity.groups.extend(info.groups.unwrap_or_default());
                    identity.email = info.email.or(identity.email);
                    identity.display_name = info.name.or(identity.display_name);
                }
                identity
            }
        };
        identity.email = identity.email.or(email);
        for name in groups.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            if identity.groups.iter().all(|group| group.name != name) {
                identity.groups.push(Group { name: name.to_owned(), gid: None });
            }
        }
        Ok(Some(identity))
    }

    fn trusted_header<'h>(
        &self,
        headers: &'h HeaderMap,
        header: IngressHeader,
        name: &str,
    ) -> Result<Option<&'h str>, AuthError> {
        if self.config.trusts(header) { single_header(headers, name) } else { Ok(None) }
    }
}

/// The value of a header that the ingress sends once. A second one would come from somebody else, so it is an error.
fn single_header<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, AuthError> {
    let mut values = headers.get_all(name).iter();
    match (values.next().map(HeaderValue::to_str), values.next()) {
        (None, _) => Ok(None),
        (Some(Ok(value)), None) => Ok(Some(value)),
        (Some(Err(_)), _) => Err(AuthError::BadIngressHeader(format!("{name} is not ASCII"))),
        (_, Some(_)) => Err(AuthError::BadIngressHeader(format!("{name} is there twice"))),
    }
}

fn unavailable(error: impl std::fmt::Debug) -> AuthError {
    tracing::warn!(?error, "Gafaelfawr gave no answer about a token");
    AuthError::Unavailable("Gafaelfawr")
}
