//! Authentication by a trusted ingress (Gafaelfawr).

use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, StatusCode};
use reqwest::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use wasmspawner_core::config::auth::{HeadersAuth, Identities, IngressHeader, IngressProof};
use wasmspawner_core::names::Username;
use wasmspawner_core::users::access::{Rights, ScopeSet};
use wasmspawner_core::users::identity::{Group, Identity};
use wasmspawner_core::users::quota::UserQuota;
use wasmspawner_core::users::token::TokenDigest;
use wasmspawner_core::values::secret::SecretString;

use super::caller::Provider;
use super::ingress_secret::IngressSecret;
use super::lookups::{Lookups, Weighed, bytes_of_user};
use super::{AuthError, AuthSetupError, Caller};
use wasmspawner_outgoing::{self as outgoing, innermost};

/// Accepts the headers of a trusted ingress, and asks Gafaelfawr for data that they do not contain.
pub(super) struct Ingress {
    client: Client,
    config: HeadersAuth,
    identities: Arc<Identities>,
    /// For the proof `shared-secret`.
    secret: Option<IngressSecret>,
    lookups: Lookups<KnownUser>,
}

const PROVIDER: &str = "Gafaelfawr";
/// The size limit for Gafaelfawr's answer about a token or a user, in bytes.
const ANSWER_BYTES: usize = 1 << 20;
/// The advice for an operator whose Gafaelfawr does not report a user's groups.
const GROUPS_REMEDY: &str = "let the ingress delegate a token for which Gafaelfawr says them, or let it set \
                             X-Auth-Request-Groups (auth.headers.ingress_also_sets)";

/// Gafaelfawr's data about a token and its user.
#[derive(Clone)]
struct KnownUser {
    user: UserInfo,
    scopes: ScopeSet,
}

impl Weighed for KnownUser {
    fn bytes(&self) -> usize {
        let UserInfo { username, details } = &self.user;
        let known = bytes_of_user(details.groups.iter().flatten(), [&details.name, &details.email]);
        known + username.as_str().len()
    }
}

/// The answer to `GET /auth/api/v1/user-info`.
#[derive(Clone, Deserialize)]
struct UserInfo {
    username: Username,
    #[serde(flatten)]
    details: UserDetails,
}

/// The user's details. Gafaelfawr leaves out those that it does not know.
#[derive(Clone, Default, Deserialize)]
struct UserDetails {
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
    #[serde(default)]
    quota: Option<Quotas>,
}

/// The user's quotas. Only the one for notebooks concerns this service.
#[derive(Clone, Deserialize)]
struct Quotas {
    #[serde(default)]
    notebook: Option<NotebookQuota>,
}

/// The limits of a user's labs: numbers of CPUs, and memory in GiB. An unknown form is an error, because ignoring it
/// could give a user more than the site allows.
#[derive(Clone, Deserialize)]
struct NotebookQuota {
    #[serde(default)]
    cpu: Option<f64>,
    #[serde(default)]
    memory: Option<f64>,
    #[serde(default = "allowed")]
    spawn: bool,
}

/// Returns the default of `spawn`: users may start labs unless Gafaelfawr forbids it.
fn allowed() -> bool {
    true
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
        let lookups = Lookups::new(PROVIDER, config.cache.unsigned_abs());
        let secret = match &config.proof {
            IngressProof::SharedSecret(secret) => Some(IngressSecret::open(secret.file.clone())?),
            IngressProof::DelegatedToken | IngressProof::BareUserHeader => None,
        };
        Ok(Self { client, config, identities, secret, lookups })
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
        if let Some(secret) = &self.secret
            && !secret.is(single_header(headers, "x-ingress-secret")?.unwrap_or_default()).await
        {
            return Err(AuthError::UntrustedPeer);
        }
        let username = single_header(headers, "x-auth-request-user")?.ok_or(AuthError::Missing)?;
        let username =
            Username::parse(username).map_err(|error| AuthError::BadIngressHeader(error.to_string()))?;
        let token = SecretString::new(single_header(headers, "x-auth-request-token")?.unwrap_or_default());
        if token.expose().is_empty() && self.config.proof == IngressProof::DelegatedToken {
            let problem = "X-Auth-Request-Token is missing; let the ingress delegate a token, or choose another \
                           auth.headers.proof";
            return Err(AuthError::BadIngressHeader(problem.into()));
        }
        let known =
            if token.expose().is_empty() { None } else { Some(self.known_user(&username, &token).await?) };
        let scopes = self.scopes(headers, &username, known.as_ref())?;
        let identity = self.identity(headers, &username, known.map(|known| known.user.details));
        if let Err(error @ AuthError::BadIngressHeader(_)) = identity {
            return Err(error);
        }
        let rights = Rights::from(scopes);
        Ok(Caller { username, identity, rights, token, authenticated_by: Provider::Ingress, slot: None })
    }

    /// Returns Gafaelfawr's data about the token. Fails if the token does not belong to `username`.
    async fn known_user(&self, username: &Username, token: &SecretString) -> Result<KnownUser, AuthError> {
        let known = self.lookups.get(TokenDigest::from_token(token.expose()), None, self.ask(token)).await?;
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
        let response = request.send().await.map_err(|error| unavailable(innermost(&error)))?;
        match response.status() {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => {
                Err(AuthError::UnknownToken)
            }
            status if status.is_success() => {
                outgoing::json(response, ANSWER_BYTES).await.map_err(unavailable)
            }
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

    /// Returns the identity of the user. It comes from Gafaelfawr, or else from the configuration. Groups come from
    /// Gafaelfawr, from the ingress's header and from the configuration. Fails if none of these sources has them.
    fn identity(
        &self,
        headers: &HeaderMap,
        user: &Username,
        details: Option<UserDetails>,
    ) -> Result<Identity, AuthError> {
        let email = self.trusted_header(headers, IngressHeader::Email, "x-auth-request-email")?;
        let in_header = self.trusted_header(headers, IngressHeader::Groups, "x-auth-request-groups")?;
        let UserDetails { name, email: known_email, uid, gid, groups, quota } = details.unwrap_or_default();
        let configured = self.identities.get(user);
        let groups_known =
            groups.is_some() || in_header.is_some() || self.identities.users.contains_key(user);
        let mut identity = match (uid, configured) {
            // Gafaelfawr leaves `gid` out for users who have a primary group of their own, whose gid is the uid.
            (Some(uid), _) => Identity::with_numbers(user.clone(), uid, gid.unwrap_or(uid)),
            (None, Some(configured)) => configured,
            (None, None) => return Err(AuthError::UnknownIdentity(user.clone())),
        };
        if !groups_known {
            return Err(AuthError::UnknownGroups { user: user.clone(), remedy: GROUPS_REMEDY });
        }
        identity.groups.extend(groups.unwrap_or_default());
        let in_header = in_header.unwrap_or_default().split(',').map(str::trim);
        identity.join(in_header.filter(|name| !name.is_empty()));
        identity
            .check_groups()
            .map_err(|problem| AuthError::UnlikelyGroups { user: user.clone(), problem })?;
        identity.email = known_email.or(identity.email).or_else(|| email.map(str::to_owned));
        identity.display_name = name.or(identity.display_name);
        let notebook = quota.and_then(|quota| quota.notebook);
        identity.quota =
            notebook.map(|quota| UserQuota::of_cpus_and_gib(quota.cpu, quota.memory, quota.spawn));
        Ok(identity)
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

/// Returns the value of a header that the ingress sends once. A second one would come from another sender, so it is an
/// error.
fn single_header<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, AuthError> {
    let mut values = headers.get_all(name).iter();
    match (values.next().map(HeaderValue::to_str), values.next()) {
        (None, _) => Ok(None),
        (Some(Ok(value)), None) => Ok(Some(value)),
        (Some(Err(_)), _) => Err(AuthError::BadIngressHeader(format!("{name} is not ASCII"))),
        (_, Some(_)) => Err(AuthError::BadIngressHeader(format!("{name} is there twice"))),
    }
}

fn unavailable(error: impl Display) -> AuthError {
    tracing::warn!(%error, "Gafaelfawr gave no answer about a token");
    AuthError::Unavailable(PROVIDER)
}
