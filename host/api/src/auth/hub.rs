//! Authentication with JupyterHub's tokens. They are checked by the Hub.

use std::fmt::Display;
use std::sync::Arc;

use http::StatusCode;
use reqwest::{Client, RequestBuilder};
use wasmspawner_core::config::auth::{Identities, JupyterHubAuth};
use wasmspawner_core::names::Username;
use wasmspawner_core::users::access::Rights;
use wasmspawner_core::users::identity::Identity;
use wasmspawner_core::users::token::TokenDigest;
use wasmspawner_core::values::secret::SecretString;

use super::caller::Provider;
use super::lookups::Lookups;
use super::{AuthError, AuthSetupError, Caller};
use crate::connections::Block;
use wasmspawner_hub::{HubApi, HubUser, OwnerKind, traced, user_url};
use wasmspawner_outgoing::{self as outgoing, innermost};

/// Asks the Hub for the owner of a token.
pub(super) struct Hub {
    client: Client,
    config: JupyterHubAuth,
    identities: Arc<Identities>,
    /// The Hub's API with the service's own token; `None` if the section `hub` is not configured.
    service: Option<Arc<HubApi>>,
    lookups: Lookups<Caller>,
}

const PROVIDER: &str = "JupyterHub";
/// The size limit for an answer, in bytes. An answer holds the owner of a token with all groups.
const ANSWER_BYTES: usize = 1 << 20;
/// The advice for an operator whose Hub does not report a user's groups. The Hub gives the same answer for an unknown
/// user and for one that the token may not read.
const GROUPS_REMEDY: &str = "let the user log in to JupyterHub once, give the service's own token there \
                             (hub.token_file) the scope read:users:groups";

impl Hub {
    pub(super) fn new(
        config: JupyterHubAuth,
        identities: Arc<Identities>,
        service: Option<Arc<HubApi>>,
    ) -> Result<Self, AuthSetupError> {
        let client = outgoing::client(&config.api_url, config.timeout.unsigned_abs())?;
        let lookups = Lookups::new(PROVIDER, config.cache.unsigned_abs());
        Ok(Self { client, config, identities, service, lookups })
    }

    /// Returns the owner of a token that was sent from an address.
    pub(super) async fn caller(&self, token: SecretString, from: Option<Block>) -> Result<Caller, AuthError> {
        self.lookups.get(TokenDigest::from_token(token.expose()), from, self.ask(&token)).await
    }

    /// Returns the identity of a user. The Hub is asked with the service's own token or, without the section `hub`,
    /// with the caller's token.
    pub(super) async fn identity_of(&self, user: &Username, caller: &Caller) -> Result<Identity, AuthError> {
        let known = match &self.service {
            Some(service) => service.user(user).await.map_err(unavailable)?,
            None if caller.authenticated_by == Provider::Hub => {
                let url = user_url(&self.config.api_url, user).map_err(unavailable)?;
                answer("/users/{name}", self.client.get(url), &caller.token).await?
            }
            None => None,
        };
        self.identity(user, known.as_ref())
    }

    async fn ask(&self, token: &SecretString) -> Result<Caller, AuthError> {
        let request = self.client.get(self.config.api_url.join("/user"));
        let owner = answer("/user", request, token).await?.ok_or(AuthError::UnknownToken)?;
        let username = Username::parse(owner.name.as_str()).map_err(unavailable)?;
        let (identity, rights) = match owner.kind {
            OwnerKind::User => {
                let groups = owner.groups.as_deref().unwrap_or_default();
                // Unlike the service, a server's token may not read the data that the authenticator stored.
                let identity = if self.service_knows_more().await {
                    Err(AuthError::UnknownIdentity(username.clone()))
                } else {
                    self.identity(&username, Some(&owner))
                };
                (identity, self.config.user_rights(&username, &owner.scopes, groups))
            }
            OwnerKind::Service => (
                Err(AuthError::UnknownIdentity(username.clone())),
                Rights::from(self.config.service_scopes(&owner.name, &owner.scopes)),
            ),
        };
        Ok(Caller {
            username,
            identity,
            rights,
            token: token.clone(),
            authenticated_by: Provider::Hub,
            slot: None,
        })
    }

    async fn service_knows_more(&self) -> bool {
        match &self.service {
            Some(service) => service.knows_more_of_users().await,
            None => false,
        }
    }

    /// Returns the identity of a user. UID and GID come from `auth_state` at the Hub, or else from the configuration;
    /// groups come from both.
    fn identity(&self, user: &Username, at_hub: Option<&HubUser>) -> Result<Identity, AuthError> {
        let auth_state = at_hub.and_then(|known| known.auth_state.as_ref());
        let numbers = auth_state.and_then(|state| state.uid.zip(state.gid.or(state.uid)));
        let groups = at_hub.and_then(|known| known.groups.as_deref());
        let known = self.identities.complete(user, numbers, groups);
        known.map_err(|lack| AuthError::incomplete(user, lack, GROUPS_REMEDY))
    }
}

/// Returns the Hub's answer, or `None` if the token may not read it.
async fn answer(
    route: &'static str,
    request: RequestBuilder,
    token: &SecretString,
) -> Result<Option<HubUser>, AuthError> {
    let request = request.header(http::header::AUTHORIZATION, format!("token {}", token.expose()));
    let response = traced(route, request).await.map_err(|error| unavailable(innermost(&error)))?;
    match response.status() {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => Ok(None),
        status if status.is_success() => {
            outgoing::json(response, ANSWER_BYTES).await.map(Some).map_err(unavailable)
        }
        status => Err(unavailable(status)),
    }
}

fn unavailable(error: impl Display) -> AuthError {
    tracing::warn!(%error, "JupyterHub gave no answer about a token or a user");
    AuthError::Unavailable(PROVIDER)
}
