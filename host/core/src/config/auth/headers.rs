//! `auth.headers`: callers are authenticated by an ingress (Gafaelfawr).

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::{BaseUrl, InvalidSetting, PeerRange};
use super::check_span;
use crate::names::Username;
use crate::users::access::{Scope, ScopeSet};

/// Callers come through an ingress that sets `X-Auth-Request-User` and, where it delegates, `X-Auth-Request-Token`.
/// With that token the service asks Gafaelfawr for the user's UID, GID, groups and scopes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeadersAuth {
    /// Gafaelfawr's base URL. The service requests `/auth/api/v1/user-info` and `/auth/api/v1/token-info` below it.
    pub url: BaseUrl,
    /// Addresses that the ingress connects from. A request from any other address is refused, whatever its headers are.
    /// List the ingress's own addresses: in a range for all pods, any pod could pretend to be the ingress.
    pub trusted_peers: Vec<PeerRange>,
    /// What a request must show besides its address.
    #[serde(default)]
    pub proof: IngressProof,
    /// How long Gafaelfawr's answer about a token is cached; at most an hour.
    #[serde(default = "default_cache")]
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub cache: SignedDuration,
    /// How long Gafaelfawr may take to answer; at most a minute.
    #[serde(default = "default_timeout")]
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub timeout: SignedDuration,
    /// Scopes that the ingress requires of every caller it lets through, and that every caller therefore has.
    #[serde(default = "default_implied_scopes")]
    pub implied_scopes: ScopeSet,
    /// Additional scopes of particular users: `bot-jupyterhub: [admin:jupyterhub]`.
    #[serde(default)]
    pub user_scopes: BTreeMap<Username, ScopeSet>,
    /// Further headers that the ingress sets or removes on **every** request. Headers that are not listed are ignored,
    /// because a caller could forge a header that the ingress passes on unchanged.
    #[serde(default)]
    pub ingress_also_sets: Vec<IngressHeader>,
}

/// What a request must show to count as one of the ingress, besides its address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IngressProof {
    /// `X-Auth-Request-Token`: a token of the user in `X-Auth-Request-User`, which Gafaelfawr confirms.
    #[default]
    DelegatedToken,
    /// The header `X-Ingress-Secret` with the content of a file that only the ingress and this service can read.
    SharedSecret(SharedSecret),
    /// Nothing: whoever connects from `trusted_peers` is whoever `X-Auth-Request-User` says. Choose this only where no
    /// other program can have one of these addresses.
    BareUserHeader,
}

/// Where the secret is that the ingress and this service share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedSecret {
    /// The file. It holds one line of at least 16 characters, and is read again for each request.
    pub file: PathBuf,
}

/// A header that only some ingresses set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IngressHeader {
    /// `X-Auth-Request-Email`
    Email,
    /// `X-Auth-Request-Groups`: names, separated by commas.
    Groups,
    /// `X-Auth-Request-Token-Scopes`: scopes, separated by spaces (older Gafaelfawr).
    Scopes,
}

impl HeadersAuth {
    pub(super) fn check(&self) -> Result<(), InvalidSetting> {
        if self.trusted_peers.is_empty() {
            let problem = "is empty, so every request would be refused; list the ingress's addresses, as in [192.0.2.7]";
            return Err(InvalidSetting::new("auth.headers.trusted_peers", problem));
        }
        check_span("auth.headers.cache", self.cache, SignedDuration::from_hours(1))?;
        check_span("auth.headers.timeout", self.timeout, SignedDuration::from_mins(1))
    }

    /// The caller's scopes: `implied_scopes`, the user's `user_scopes`, and the scopes of the user's token.
    pub fn scopes(&self, user: &Username, of_token: impl IntoIterator<Item = Scope>) -> ScopeSet {
        let own = self.user_scopes.get(user).into_iter().flatten();
        self.implied_scopes.iter().chain(own).copied().chain(of_token).collect()
    }

    /// True when the header is trusted.
    pub fn trusts(&self, header: IngressHeader) -> bool {
        self.ingress_also_sets.contains(&header)
    }
}

fn default_cache() -> SignedDuration {
    SignedDuration::from_mins(1)
}

fn default_timeout() -> SignedDuration {
    SignedDuration::from_secs(5)
}

fn default_implied_scopes() -> ScopeSet {
    [Scope::ExecNotebook].into()
}
