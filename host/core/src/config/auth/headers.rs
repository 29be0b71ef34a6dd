//! `auth.headers`: an ingress that has authenticated the caller (Gafaelfawr).

use std::collections::BTreeMap;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::{BaseUrl, InvalidSetting, PeerRange};
use super::check_span;
use crate::access::{Scope, ScopeSet};
use crate::names::Username;

/// Callers come through an ingress that sets `X-Auth-Request-User` and, where it delegates, `X-Auth-Request-Token`.
/// What else is to be known is asked of Gafaelfawr with that token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeadersAuth {
    /// Gafaelfawr's base URL; `/auth/api/v1/user-info` and `/auth/api/v1/token-info` are asked below it.
    pub url: BaseUrl,
    /// Where the ingress connects from. Requests from elsewhere are refused whatever their headers say.
    pub trusted_peers: Vec<PeerRange>,
    /// How long an answer about a token is believed; at most an hour.
    #[serde(default = "default_cache")]
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub cache: SignedDuration,
    /// How long Gafaelfawr may take to answer; at most a minute.
    #[serde(default = "default_timeout")]
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub timeout: SignedDuration,
    /// Scopes that the ingress demands of every caller it lets through, so that each one has them.
    #[serde(default = "default_implied_scopes")]
    pub implied_scopes: ScopeSet,
    /// Scopes of particular users, in addition: `bot-jupyterhub: [admin:jupyterhub]`.
    #[serde(default)]
    pub user_scopes: BTreeMap<Username, ScopeSet>,
    /// Further headers that the ingress sets or removes on **every** request. One that it lets through unchanged
    /// could be forged by the caller, so none is believed unless it is listed here.
    #[serde(default)]
    pub ingress_also_sets: Vec<IngressHeader>,
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
            let problem =
                "empty, so that nobody could call; list the ingress's addresses, as in [10.0.0.0/8]";
            return Err(InvalidSetting::new("auth.headers.trusted_peers", problem));
        }
        check_span("auth.headers.cache", self.cache, SignedDuration::from_hours(1))?;
        check_span("auth.headers.timeout", self.timeout, SignedDuration::from_mins(1))
    }

    /// What a caller may do: what passing the ingress means, what the user is given here, and what their token has.
    pub fn scopes(&self, user: &Username, of_token: impl IntoIterator<Item = Scope>) -> ScopeSet {
        let own = self.user_scopes.get(user).into_iter().flatten();
        self.implied_scopes.iter().chain(own).copied().chain(of_token).collect()
    }

    /// True when that header may be believed.
    pub fn believes(&self, header: IngressHeader) -> bool {
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
