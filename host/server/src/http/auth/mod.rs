//! Authentication: finds out who sent a request.

mod bearer;
mod caller;
mod error;
mod hub;
mod ingress;
mod lookups;
mod static_tokens;

use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderMap;
use wasmspawner_core::config::auth::{Auth, AuthMethod, Identities};
use wasmspawner_core::identity::Identity;
use wasmspawner_core::names::Username;

pub(super) use caller::Caller;
pub(super) use error::AuthError;
pub use error::AuthSetupError;
use hub::Hub;
use ingress::Ingress;
use static_tokens::StaticTokens;

/// Authenticates requests with the configured method.
#[derive(Clone)]
pub struct Authenticator {
    method: Arc<Method>,
    identities: Arc<Identities>,
}

enum Method {
    Static(StaticTokens),
    Hub(Hub),
    Ingress(Ingress),
}

impl Authenticator {
    /// Prepares the configured method. Static tokens are read now, so that an invalid file prevents the start.
    pub async fn new(auth: Auth) -> Result<Self, AuthSetupError> {
        let identities = Arc::new(auth.identities);
        let method = match auth.method {
            AuthMethod::Static(config) => {
                Method::Static(StaticTokens::open(config.tokens_file, Arc::clone(&identities)).await?)
            }
            AuthMethod::JupyterHub(config) => Method::Hub(Hub::new(config, Arc::clone(&identities))?),
            AuthMethod::Headers(config) => Method::Ingress(Ingress::new(config, Arc::clone(&identities))?),
        };
        Ok(Self { method: Arc::new(method), identities })
    }

    /// The caller who sent a request with these headers from the address `peer`.
    pub(super) async fn caller(
        &self,
        headers: &HeaderMap,
        peer: Option<IpAddr>,
    ) -> Result<Caller, AuthError> {
        match &*self.method {
            Method::Static(tokens) => tokens.caller(&bearer::token(headers)?).await,
            Method::Hub(hub) => hub.caller(bearer::token(headers)?).await,
            Method::Ingress(ingress) => ingress.caller(headers, peer).await,
        }
    }

    /// The uid, gid and groups of `user`, on whose lab `caller` may act.
    pub(super) async fn identity_of(&self, caller: &Caller, user: &Username) -> Result<Identity, AuthError> {
        if caller.username == *user
            && let Some(identity) = &caller.identity
        {
            return Ok(identity.clone());
        }
        let found = match &*self.method {
            Method::Hub(hub) => hub.identity_of(&caller.token, user).await?,
            Method::Static(_) | Method::Ingress(_) => None,
        };
        found.or_else(|| self.identities.get(user)).ok_or_else(|| AuthError::UnknownIdentity(user.clone()))
    }
}

impl std::fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authenticator")
    }
}
