//! Authentication with JupyterHub's tokens, which are checked at the Hub.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use reqwest::{Client, RequestBuilder, Url};
use serde::Deserialize;
use wasmspawner_core::access::Scope;
use wasmspawner_core::config::auth::{Identities, JupyterHubAuth};
use wasmspawner_core::identity::{Group, Identity};
use wasmspawner_core::names::Username;
use wasmspawner_core::secret::SecretString;
use wasmspawner_core::token::TokenDigest;

use super::lookups::Lookups;
use super::{AuthError, AuthSetupError, Caller};
use crate::outgoing;

/// Asks the Hub whom a token belongs to.
pub(super) struct Hub {
    client: Client,
    config: JupyterHubAuth,
    identities: Arc<Identities>,
    lookups: Lookups<Caller>,
}

/// The fields that are read of the Hub's answer about the owner of a token, or about a user.
#[derive(Deserialize)]
struct Model {
    #[serde(default)]
    kind: Kind,
    name: String,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    scopes: Vec<String>,
    #[serde(default)]
    auth_state: Option<AuthState>,
}

#[derive(Deserialize, Default, PartialEq, Eq, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Kind {
    #[default]
    User,
    Service,
}

/// The fields that are read of a user's `auth_state`, where an authenticator may put them.
#[derive(Deserialize)]
struct AuthState {
    #[serde(default)]
    uid: Option<u32>,
    #[serde(default)]
    gid: Option<u32>,
}

impl Hub {
    pub(super) fn new(config: JupyterHubAuth, identities: Arc<Identities>) -> Result<Self, AuthSetupError> {
        let client = outgoing::client(&config.api_url, config.timeout.unsigned_abs())?;
        let lookups = Lookups::new(config.cache.unsigned_abs().max(Duration::from_millis(1)));
        Ok(Self { client, config, identities, lookups })
    }

    pub(super) async fn caller(&self, token: SecretString) -> Result<Caller, AuthError> {
        self.lookups.get(TokenDigest::of(token.expose()), self.ask(&token)).await
    }

    /// The identity of another user, as far as the caller's token may read it at the Hub.
    pub(super) async fn identity_of(
        &self,
        token: &SecretString,
        user: &Username,
    ) -> Result<Option<Identity>, AuthError> {
        let mut url = Url::parse(&self.config.api_url.join("/users")).map_err(unavailable)?;
        if let Ok(mut path) = url.path_segments_mut() {
            path.push(user.as_str());
        }
        let model = answer(self.client.get(url), token).await?;
        Ok(model.and_then(|model| self.identity(user, &model)))
    }

    async fn ask(&self, token: &SecretString) -> Result<Caller, AuthError> {
        let request = self.client.get(self.config.api_url.join("/user"));
        let model = answer(request, token).await?.ok_or(AuthError::UnknownToken)?;
        let username = Username::parse(model.name.as_str()).map_err(unavailable)?;
        let (identity, scopes) = match model.kind {
            Kind::User => (
                self.identity(&username, &model),
                self.config.user_scopes(&username, &model.scopes, &model.groups),
            ),
            Kind::Service => {
                // A service owns no lab, whatever its name is.
                let mut scopes = self.config.service_scopes(&model.name, &model.scopes);
                scopes.remove(&Scope::ExecNotebook);
                (None, scopes)
            }
        };
        Ok(Caller { username, identity, scopes, token: token.clone() })
    }

    /// The identity of a user: uid and gid from `auth_state` at the Hub, else from the configuration; groups from both.
    fn identity(&self, user: &Username, model: &Model) -> Option<Identity> {
        let known = self.identities.get(user);
        let at_hub = model.auth_state.as_ref().and_then(|state| state.uid.zip(state.gid.or(state.uid)));
        let mut identity = match (at_hub, known) {
            (None, known) => known?,
            (Some((uid, gid)), Some(known)) => Identity { uid, gid, ..known },
            (Some((uid, gid)), None) => {
                let username = user.clone();
                Identity { username, uid, gid, groups: vec![], email: None, display_name: None }
            }
        };
        for name in &model.groups {
            if identity.groups.iter().all(|group| group.name != *name) {
                identity.groups.push(Group { name: name.clone(), gid: None });
            }
        }
        Some(identity)
    }
}

/// The Hub's answer; `None` when the token may not read it.
async fn answer(request: RequestBuilder, token: &SecretString) -> Result<Option<Model>, AuthError> {
    let request = request.header(http::header::AUTHORIZATION, format!("token {}", token.expose()));
    let response = request.send().await.map_err(unavailable)?;
    match response.status() {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => Ok(None),
        status if status.is_success() => response.json().await.map(Some).map_err(unavailable),
        status => Err(unavailable(status)),
    }
}

fn unavailable(error: impl std::fmt::Debug) -> AuthError {
    tracing::warn!(?error, "JupyterHub gave no answer about a token");
    AuthError::Unavailable("JupyterHub")
}
