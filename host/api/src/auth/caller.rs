//! The authenticated sender of a request.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, FromRef, FromRequestParts};
use http::request::Parts;
use http::{HeaderMap, Method};
use wasmspawner_core::names::Username;
use wasmspawner_core::users::access::{Access, Permit, Rights, permit};
use wasmspawner_core::users::identity::Identity;
use wasmspawner_core::values::secret::SecretString;

use super::lookups::{Weighed, bytes_of_user};
use super::{AuthError, Authenticator, Sender};
use crate::connections::{Visitor, Who};
use crate::fair_use::{FairUse, UserSlot};
use crate::problem::Problem;
use crate::problem::kind::ProblemKind;
use wasmspawner_telemetry::trace;

/// The authenticated sender of a request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) username: Username,
    /// The user's UID, GID and groups from the credential, or the reason why they are unknown. A service has none.
    pub(super) identity: Result<Identity, AuthError>,
    pub(super) rights: Rights,
    pub(super) token: SecretString,
    pub(super) authenticated_by: Provider,
    /// The slot that the request occupies until it is answered; see [`FairUse`].
    pub(super) slot: Option<UserSlot>,
}

/// The source that has confirmed a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Provider {
    TokensFile,
    Hub,
    Ingress,
    Oidc,
}

impl Caller {
    /// Returns the permit for an action. Fails with 403 if the caller may not do it.
    pub(crate) fn may(&self, action: Access<'_>) -> Result<Permit, Problem> {
        permit(&self.username, &self.rights, action)
            .map_err(|error| Problem::new(ProblemKind::PermissionDenied, error.to_string()))
    }

    /// The caller's UID, GID and groups, if they are known.
    pub(crate) fn own_identity(&self) -> Option<&Identity> {
        self.identity.as_ref().ok()
    }

    /// Returns the user whose limits apply to the caller's actions. It is `None` for the Hub and administrators, who
    /// act for all users.
    pub(crate) fn limited(&self) -> Option<&Username> {
        (!self.rights.is_administrative()).then_some(&self.username)
    }

    /// Returns the token for a lab that the caller starts with this permit: the caller's own, or an empty one.
    pub(crate) fn token_for_lab(&self, permit: Permit) -> SecretString {
        if self.rights.may_enter_lab(permit) { self.token.clone() } else { SecretString::default() }
    }
}

impl Caller {
    /// Refuses a request that an ingress has authenticated if it changes something and has no header
    /// `X-Requested-With`. An ingress authenticates a browser by its cookies, which the browser also sends when a page
    /// of another site submits a form. Such a form cannot set this header. A bearer token is never sent without intent.
    fn refuse_cross_site(&self, method: &Method, headers: &HeaderMap) -> Result<(), AuthError> {
        let by_cookie = self.authenticated_by == Provider::Ingress;
        if by_cookie && !method.is_safe() && !headers.contains_key("x-requested-with") {
            return Err(AuthError::CrossSite);
        }
        Ok(())
    }
}

impl Weighed for Caller {
    fn bytes(&self) -> usize {
        let servers: usize = self.rights.servers.iter().map(|server| server.as_str().len() + 64).sum();
        let identity = self
            .identity
            .as_ref()
            .map_or(0, |identity| bytes_of_user(&identity.groups, [&identity.email, &identity.display_name]));
        servers + identity + self.username.as_str().len() + self.token.expose().len()
    }
}

impl<S> FromRequestParts<S> for Caller
where
    S: Send + Sync,
    Authenticator: FromRef<S>,
    FairUse: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip());
        let from = Sender { peer, share: Visitor::share(&parts.extensions) };
        let mut caller = Authenticator::from_ref(state).caller(&parts.headers, &from).await?;
        caller.refuse_cross_site(&parts.method, &parts.headers)?;
        Visitor::authenticated(&parts.extensions, caller.limited().map_or(Who::Site, Who::User));
        tracing::Span::current().record("caller", caller.username.as_str());
        trace::note_caller(caller.username.as_str());
        if let Some(user) = caller.limited() {
            caller.slot = Some(FairUse::from_ref(state).request(user).await?);
        }
        Ok(caller)
    }
}

impl From<AuthError> for Problem {
    fn from(error: AuthError) -> Self {
        let msg = error.to_string();
        match error {
            AuthError::Missing | AuthError::Malformed => {
                Self::at(&["header", "authorization"], ProblemKind::NotAuthenticated, msg)
            }
            AuthError::UnknownToken | AuthError::ExpiredToken(_) | AuthError::UnsuitableToken(_) => {
                Self::at(&["header", "authorization"], ProblemKind::InvalidToken, msg)
            }
            AuthError::UntrustedPeer => Self::new(ProblemKind::UntrustedPeer, msg),
            AuthError::BadIngressHeader(_) => Self::new(ProblemKind::InvalidHeader, msg),
            AuthError::CrossSite => {
                Self::at(&["header", "x-requested-with"], ProblemKind::CrossSiteRequest, msg)
            }
            AuthError::Unavailable(_) => {
                Self::new(ProblemKind::IdentityProviderUnavailable, msg).retry_after(5)
            }
            AuthError::UnknownIdentity(_)
            | AuthError::UnknownGroups { .. }
            | AuthError::UnlikelyGroups { .. } => Self::new(ProblemKind::IdentityUnknown, msg),
        }
    }
}
