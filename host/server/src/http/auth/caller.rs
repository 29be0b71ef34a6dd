//! The authenticated sender of a request.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, FromRef, FromRequestParts};
use http::StatusCode;
use http::request::Parts;
use wasmspawner_core::access::{Access, Permit, ScopeSet, permit};
use wasmspawner_core::identity::Identity;
use wasmspawner_core::names::Username;
use wasmspawner_core::secret::SecretString;

use super::{AuthError, Authenticator};
use crate::http::problem::Problem;

/// The authenticated sender of a request.
#[derive(Debug, Clone)]
pub(in crate::http) struct Caller {
    pub(in crate::http) username: Username,
    /// The user's uid, gid and groups, where the authentication method knows them; a service has none.
    pub(in crate::http) identity: Option<Identity>,
    pub(in crate::http) scopes: ScopeSet,
    pub(in crate::http) token: SecretString,
}

impl Caller {
    /// The permit that allows the caller to do this; without one, 403.
    pub(in crate::http) fn may(&self, action: Access<'_>) -> Result<Permit, Problem> {
        permit(&self.username, &self.scopes, action)
            .map_err(|error| Problem::new(StatusCode::FORBIDDEN, "permission_denied", error.to_string()))
    }

    /// The token that a lab of `user` gets: the caller's if the caller is that user, else an empty one. An
    /// administrator's token would give the user the administrator's rights.
    pub(in crate::http) fn token_for(&self, user: &Username) -> SecretString {
        if self.username == *user { self.token.clone() } else { SecretString::default() }
    }
}

impl<S> FromRequestParts<S> for Caller
where
    S: Send + Sync,
    Authenticator: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip());
        let caller = Authenticator::from_ref(state).caller(&parts.headers, peer).await?;
        tracing::Span::current().record("caller", caller.username.as_str());
        Ok(caller)
    }
}

impl From<AuthError> for Problem {
    fn from(error: AuthError) -> Self {
        let msg = error.to_string();
        match error {
            AuthError::Missing | AuthError::Malformed => {
                Self::at(StatusCode::UNAUTHORIZED, &["header", "authorization"], "not_authenticated", msg)
            }
            AuthError::UnknownToken => {
                Self::at(StatusCode::UNAUTHORIZED, &["header", "authorization"], "invalid_token", msg)
            }
            AuthError::UntrustedPeer => Self::new(StatusCode::UNAUTHORIZED, "untrusted_peer", msg),
            AuthError::BadIngressHeader(_) => Self::new(StatusCode::UNAUTHORIZED, "invalid_header", msg),
            AuthError::Unavailable(_) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "identity_provider_unavailable", msg)
                    .retry_after(5)
            }
            AuthError::UnknownIdentity(_) => Self::new(StatusCode::FORBIDDEN, "identity_unknown", msg),
        }
    }
}
