//! Authentication with access tokens of an OpenID Connect provider. They are checked with the provider's keys.

mod endpoint;
mod key_cache;
mod key_set;
mod signature;

use std::sync::Arc;

use jiff::Timestamp;
use jsonwebtoken::dangerous::insecure_decode_claims;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Header, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::{Map, Number, Value};
use wasmspawner_core::config::auth::{Identities, OidcAuth};
use wasmspawner_core::config::token_claims::{Claims, TokenUser};
use wasmspawner_core::users::access::Rights;
use wasmspawner_core::users::identity::Identity;
use wasmspawner_core::values::secret::SecretString;

use super::caller::Provider;
use super::{AuthError, AuthSetupError, Caller};
use endpoint::Endpoint;
use key_cache::KeyCache;

/// Checks access tokens with the provider's keys.
pub(super) struct Oidc {
    config: OidcAuth,
    identities: Arc<Identities>,
    endpoint: Arc<Endpoint>,
    keys: KeyCache,
}

const PROVIDER: &str = "the OpenID Connect provider";
/// The advice for an operator whose provider does not report a user's groups.
const GROUPS_REMEDY: &str = "let the provider list them in its access tokens (auth.oidc.groups_claim)";

/// The accepted algorithms. They are asymmetric: with a shared secret, anyone who can check a token could make one.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// The types of access tokens in lower case: those of RFC 9068, section 4, and those that providers used before it.
const TYPES: [&str; 4] = ["jwt", "application/jwt", "at+jwt", "application/at+jwt"];

/// The claims that are read from a token before its signature is checked.
#[derive(Deserialize)]
struct Stated {
    iss: String,
    #[serde(default)]
    exp: Option<Number>,
}

impl Oidc {
    pub(super) fn new(config: OidcAuth, identities: Arc<Identities>) -> Result<Self, AuthSetupError> {
        signature::install();
        let endpoint = Arc::new(Endpoint::new(&config)?);
        let keys = KeyCache::new(config.cache.unsigned_abs());
        Ok(Self { config, identities, endpoint, keys })
    }

    /// True if the token names this provider as its issuer. No other method of authentication may see such a token, even
    /// after a refusal: a token that is valid at the provider would reach another party.
    pub(super) fn claims(&self, token: &SecretString) -> bool {
        self.stated(token).is_some()
    }

    pub(super) async fn caller(&self, token: &SecretString) -> Result<Caller, AuthError> {
        let claims = self.checked(token).await?;
        let user =
            claims.user(&self.config).map_err(|error| AuthError::UnsuitableToken(error.to_string()))?;
        Ok(Caller {
            username: user.username.clone(),
            rights: Rights::from(user.scopes.clone()),
            identity: self.identity(user),
            token: token.clone(),
            authenticated_by: Provider::Oidc,
            slot: None,
        })
    }

    /// Checks that a token was issued by this provider for this service, and returns its claims.
    async fn checked(&self, token: &SecretString) -> Result<Claims, AuthError> {
        let stated = self.stated(token).ok_or(AuthError::UnknownToken)?;
        let header = decode_header(token.expose()).map_err(|_| AuthError::UnknownToken)?;
        if !is_acceptable(&header) {
            return Err(AuthError::UnknownToken);
        }
        let (kid, algorithm) = (header.kid.as_deref(), header.alg);
        let endpoint = Arc::clone(&self.endpoint);
        let ask = async move { endpoint.key_set().await };
        let set = self.keys.get(|set| set.knows(kid, algorithm), ask).await?;
        let key = set.find(kid, algorithm).ok_or(AuthError::UnknownToken)?;
        let payload = decode::<Map<String, Value>>(token.expose(), key, &self.validation(algorithm))
            .map_err(|error| self.refusal(error.kind(), stated))?;
        Ok(Claims::new(payload.claims))
    }

    fn validation(&self, algorithm: Algorithm) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.leeway = self.config.leeway.unsigned_abs().as_secs();
        validation.validate_nbf = true;
        validation.set_issuer(&[self.config.issuer.as_str()]);
        validation.set_audience(&[&self.config.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        validation
    }

    /// Returns the reason for a refusal. It may mention claims: the signature is checked first, so the sender has a
    /// genuine token of this provider and can read its claims.
    fn refusal(&self, kind: &ErrorKind, stated: Stated) -> AuthError {
        let unsuitable = match kind {
            ErrorKind::ExpiredSignature => {
                let expired = stated.exp.and_then(|exp| Timestamp::from_second(exp.as_i64()?).ok());
                return expired.map_or_else(
                    || AuthError::UnsuitableToken("it has expired".into()),
                    AuthError::ExpiredToken,
                );
            }
            ErrorKind::ImmatureSignature => "it is not valid yet".into(),
            ErrorKind::InvalidAudience => {
                format!("its claim `aud` does not contain `{}`", self.config.audience)
            }
            ErrorKind::MissingRequiredClaim(claim) => format!("its claim `{claim}` is missing"),
            ErrorKind::InvalidClaimFormat(claim) => format!("its claim `{claim}` has another form"),
            _ => return AuthError::UnknownToken,
        };
        AuthError::UnsuitableToken(unsuitable)
    }

    fn stated(&self, token: &SecretString) -> Option<Stated> {
        let stated: Stated = insecure_decode_claims(token.expose()).ok()?;
        (stated.iss == self.config.issuer.as_str()).then_some(stated)
    }

    /// Returns the identity of the token's user. UID, GID, email and display name come from the token, or else from the
    /// configuration; groups come from both.
    fn identity(&self, user: TokenUser) -> Result<Identity, AuthError> {
        let TokenUser { username, numbers, groups, email, display_name, scopes: _ } = user;
        let known = self
            .identities
            .complete(&username, numbers, groups.as_deref())
            .map_err(|lack| AuthError::incomplete(&username, lack, GROUPS_REMEDY))?;
        Ok(Identity {
            email: email.or(known.email),
            display_name: display_name.or(known.display_name),
            ..known
        })
    }
}

/// False if the header states a type that is none of [`TYPES`], an algorithm that is not accepted, or a critical
/// extension (`crit`, RFC 7515, section 4.1.11).
/// Keys in a header, or at an address in it, are never used.
fn is_acceptable(header: &Header) -> bool {
    let known = |typ: &String| TYPES.contains(&typ.to_ascii_lowercase().as_str());
    ALGORITHMS.contains(&header.alg) && header.typ.as_ref().is_none_or(known) && header.crit.is_none()
}
