//! Authentication: identifies the sender of a request.

pub(crate) mod bearer;
mod caller;
mod error;
mod hub;
mod ingress;
mod ingress_secret;
mod lookups;
mod oidc;
mod static_tokens;

use std::net::IpAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::HeaderMap;
use wasmspawner_core::config::auth::{Auth, AuthMethod, Identities};
use wasmspawner_core::names::Username;
use wasmspawner_core::users::identity::Identity;
use wasmspawner_core::values::secret::SecretString;

use super::connections::Block;
pub(crate) use caller::Caller;
pub(crate) use error::AuthError;
pub use error::AuthSetupError;
use hub::Hub;
use ingress::Ingress;
use oidc::Oidc;
use static_tokens::StaticTokens;
use wasmspawner_hub::HubApi;

/// Authenticates requests with the configured methods. They may be replaced while the service runs. Clones share them.
#[derive(Clone)]
pub struct Authenticator {
    current: Arc<ArcSwap<Methods>>,
    hub: Option<Arc<HubApi>>,
}

/// The origin of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sender {
    /// The address.
    pub(crate) peer: Option<IpAddr>,
    /// The address for limits; `None` if many people share it.
    pub(crate) share: Option<Block>,
}

/// The methods of one configuration.
pub(crate) struct Methods {
    methods: Vec<Method>,
    identities: Arc<Identities>,
}

enum Method {
    Static(StaticTokens),
    Hub(Hub),
    Ingress(Ingress),
    Oidc(Oidc),
}

impl Authenticator {
    /// Prepares the configured methods. Static tokens are read now, so that an invalid file prevents the start. `hub`
    /// is the Hub's API with the service's own token.
    pub async fn new(auth: Auth, hub: Option<Arc<HubApi>>) -> Result<Self, AuthSetupError> {
        let methods = Methods::open(auth, hub.clone()).await?;
        Ok(Self { current: Arc::new(ArcSwap::from_pointee(methods)), hub })
    }

    /// Prepares the methods of another configuration without using them yet.
    pub(crate) async fn prepare(&self, auth: Auth) -> Result<Methods, AuthSetupError> {
        Methods::open(auth, self.hub.clone()).await
    }

    /// Replaces the methods. Requests that are being authenticated finish with the old ones; cached answers are
    /// dropped.
    pub(crate) fn replace(&self, methods: Methods) {
        self.current.store(Arc::new(methods));
    }

    /// Returns the caller who sent a request with these headers, according to the first method that accepts the
    /// credential.
    pub(crate) async fn caller(&self, headers: &HeaderMap, from: &Sender) -> Result<Caller, AuthError> {
        self.current.load_full().caller(headers, from).await
    }

    /// Returns the UID, GID and groups of `user`, for whom `caller` starts a lab or reads a form.
    pub(crate) async fn identity_of(&self, caller: &Caller, user: &Username) -> Result<Identity, AuthError> {
        self.current.load_full().identity_of(caller, user).await
    }
}

impl Methods {
    async fn open(auth: Auth, hub: Option<Arc<HubApi>>) -> Result<Self, AuthSetupError> {
        let identities = Arc::new(auth.identities);
        let mut methods = Vec::with_capacity(auth.methods.len());
        for method in auth.methods {
            methods.push(match method {
                AuthMethod::Static(config) => Method::Static(StaticTokens::open(config.tokens_file).await?),
                AuthMethod::JupyterHub(config) => {
                    Method::Hub(Hub::new(config, Arc::clone(&identities), hub.clone())?)
                }
                AuthMethod::Headers(config) => {
                    Method::Ingress(Ingress::new(config, Arc::clone(&identities))?)
                }
                AuthMethod::Oidc(config) => Method::Oidc(Oidc::new(config, Arc::clone(&identities))?),
            });
        }
        Ok(Self { methods, identities })
    }

    async fn caller(&self, headers: &HeaderMap, from: &Sender) -> Result<Caller, AuthError> {
        let mut refusal = AuthError::Missing;
        let may_be_the_hub_s = self.may_be_the_hub_s(headers);
        for method in &self.methods {
            if matches!(method, Method::Hub(_)) && !may_be_the_hub_s {
                refusal = heavier(refusal, AuthError::UnknownToken);
                continue;
            }
            let error = match method.caller(headers, from).await {
                Ok(caller) => return Ok(caller),
                Err(error) => error,
            };
            let is_last = method.is_last_for(headers, &error);
            refusal = heavier(refusal, error);
            if is_last {
                break;
            }
        }
        Err(refusal)
    }

    /// False if JupyterHub must not see the credential. If another identity provider is configured, only credentials
    /// with the form of JupyterHub's own tokens are sent there. A token of another provider has dots, even if it is
    /// slightly malformed.
    fn may_be_the_hub_s(&self, headers: &HeaderMap) -> bool {
        let others = self.methods.iter().any(|method| matches!(method, Method::Oidc(_) | Method::Ingress(_)));
        let in_form = |token: SecretString| {
            token.expose().bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        !others || bearer::token(headers).map_or(true, in_form)
    }

    async fn identity_of(&self, caller: &Caller, user: &Username) -> Result<Identity, AuthError> {
        let own = (caller.username == *user).then_some(&caller.identity);
        if let Some(Ok(identity)) = own {
            return Ok(identity.clone());
        }
        if let Some(hub) = self.methods.iter().find_map(Method::hub) {
            return hub.identity_of(user, caller).await;
        }
        if let Some(Err(error @ AuthError::UnknownGroups { .. })) = own {
            return Err(error.clone());
        }
        self.configured_identity(user)
    }

    /// Returns the identity from the configuration. If an identity provider is also configured, the default entry is
    /// not a source of groups, so the user needs an entry of their own.
    fn configured_identity(&self, user: &Username) -> Result<Identity, AuthError> {
        let identity = self.identities.get(user).ok_or_else(|| AuthError::UnknownIdentity(user.clone()))?;
        let only_static = self.methods.iter().all(|method| matches!(method, Method::Static(_)));
        if only_static || self.identities.users.contains_key(user) {
            return Ok(identity);
        }
        let remedy = "let the user's own token start the lab";
        Err(AuthError::UnknownGroups { user: user.clone(), remedy })
    }
}

/// Returns the error that is more specific about a credential; the first one if they are equal.
fn heavier(one: AuthError, other: AuthError) -> AuthError {
    if other.weight() > one.weight() { other } else { one }
}

impl Method {
    async fn caller(&self, headers: &HeaderMap, from: &Sender) -> Result<Caller, AuthError> {
        match self {
            Self::Static(tokens) => tokens.caller(&bearer::token(headers)?).await,
            Self::Hub(hub) => hub.caller(bearer::token(headers)?, from.share).await,
            Self::Ingress(ingress) => ingress.caller(headers, from.peer).await,
            Self::Oidc(oidc) => oidc.caller(&bearer::token(headers)?).await,
        }
    }

    /// True if no later method may see the credential, which this method has refused.
    fn is_last_for(&self, headers: &HeaderMap, error: &AuthError) -> bool {
        match self {
            Self::Oidc(oidc) => bearer::token(headers).is_ok_and(|token| oidc.claims(&token)),
            Self::Static(tokens) => bearer::token(headers).is_ok_and(|token| tokens.have_had(&token)),
            // The ingress alone decides who its visitors are: if it is wrong, no other method is tried.
            Self::Ingress(_) => !matches!(error, AuthError::Missing | AuthError::UntrustedPeer),
            Self::Hub(_) => false,
        }
    }

    fn hub(&self) -> Option<&Hub> {
        match self {
            Self::Hub(hub) => Some(hub),
            Self::Static(_) | Self::Ingress(_) | Self::Oidc(_) => None,
        }
    }
}

impl std::fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authenticator")
    }
}
