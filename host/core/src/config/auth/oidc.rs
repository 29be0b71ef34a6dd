//! `auth.oidc`: callers present access tokens of an OpenID Connect provider.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::InvalidSetting;
use super::check_span;
use super::claim_name::ClaimName;
use super::issuer::{Issuer, KeySetUrl};
use crate::names::Username;
use crate::users::access::{Scope, ScopeSet};

/// Callers present an access token (JWT) of an OpenID Connect provider, such as Keycloak. The service checks it with
/// the provider's keys; the provider is not asked about single tokens. A token is accepted until it expires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OidcAuth {
    /// The provider, exactly as in the claim `iss` of its tokens: `https://sso.example.org/realms/lab`.
    pub issuer: Issuer,
    /// What the claim `aud` has to contain. Choose a name that stands for this service alone: whoever receives a token
    /// with this audience can act as its user here.
    pub audience: String,
    /// Where the provider publishes its keys (JWKS). Without it, the service reads the URL from
    /// `ISSUER/.well-known/openid-configuration`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_url: Option<KeySetUrl>,
    /// How long the provider's keys are used before they are read again; at most a day.
    #[serde(default = "default_cache")]
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub cache: SignedDuration,
    /// How long the provider may take to answer; at most a minute.
    #[serde(default = "default_timeout")]
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub timeout: SignedDuration,
    /// How much the provider's clock may differ from the service's; at most five minutes.
    #[serde(default = "default_leeway")]
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub leeway: SignedDuration,
    /// The claim with the username at JupyterHub. Users must not be able to change it at the provider. Like every claim
    /// here it is a name, or a path such as `/realm_access/roles`.
    #[serde(default = "default_username_claim")]
    pub username_claim: ClaimName,
    /// The claim with the list of the user's groups. A user whose token lacks it cannot start a lab, unless
    /// `auth.identities.users` has the user.
    #[serde(default = "default_groups_claim")]
    pub groups_claim: ClaimName,
    /// The claim with the UID. Without it, UIDs and GIDs come from `auth.identities`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid_claim: Option<ClaimName>,
    /// The claim with the GID of the primary group, beside `uid_claim`. Without it, the GID is the UID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid_claim: Option<ClaimName>,
    /// The claim that lists the token's scopes, of which those of this service count. `null` where the provider gives
    /// any scope to whoever requests it.
    #[serde(default = "default_scope_claim")]
    pub scope_claim: Option<ClaimName>,
    /// Scopes of every caller with a valid token.
    #[serde(default = "default_implied_scopes")]
    pub implied_scopes: ScopeSet,
    /// Additional scopes of particular users: `service-account-hub: [admin:jupyterhub]`.
    #[serde(default)]
    pub user_scopes: BTreeMap<Username, ScopeSet>,
    /// Additional scopes by group in the token: `jupyter-admins: [admin:notebook]`.
    #[serde(default)]
    pub group_scopes: BTreeMap<String, ScopeSet>,
}

impl OidcAuth {
    pub(super) fn check(&self) -> Result<(), InvalidSetting> {
        let invalid =
            |key: &str, problem: &str| Err(InvalidSetting::new(format!("auth.oidc.{key}"), problem));
        if self.audience.trim().is_empty() {
            return invalid(
                "audience",
                "is empty; write what the claim `aud` of tokens for this service contains",
            );
        }
        if self.gid_claim.is_some() && self.uid_claim.is_none() {
            return invalid("gid_claim", "is set without uid_claim; set both, or remove it");
        }
        check_span("auth.oidc.cache", self.cache, SignedDuration::from_hours(24))?;
        check_span("auth.oidc.timeout", self.timeout, SignedDuration::from_mins(1))?;
        if self.leeway.is_negative() || self.leeway > SignedDuration::from_mins(5) {
            return invalid("leeway", "is out of range; write at least 0s and at most 5m");
        }
        Ok(())
    }

    /// The scopes of a token: `implied_scopes`, those of the user and the user's groups, and those that it lists.
    pub fn scopes(&self, user: &Username, groups: &[String], of_token: ScopeSet) -> ScopeSet {
        let own = self.user_scopes.get(user).into_iter().flatten();
        let of_groups = groups.iter().filter_map(|group| self.group_scopes.get(group)).flatten();
        self.implied_scopes.iter().chain(own).chain(of_groups).copied().chain(of_token).collect()
    }
}

fn default_cache() -> SignedDuration {
    SignedDuration::from_mins(10)
}

fn default_timeout() -> SignedDuration {
    SignedDuration::from_secs(5)
}

fn default_leeway() -> SignedDuration {
    SignedDuration::from_secs(30)
}

fn default_username_claim() -> ClaimName {
    ClaimName::constant("preferred_username")
}

fn default_groups_claim() -> ClaimName {
    ClaimName::constant("groups")
}

#[expect(clippy::unnecessary_wraps, reason = "the default of a setting that may be null")]
fn default_scope_claim() -> Option<ClaimName> {
    Some(ClaimName::constant("scope"))
}

fn default_implied_scopes() -> ScopeSet {
    [Scope::ExecNotebook].into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Scope::{AdminJupyterhub, AdminNotebook, ExecNotebook};

    fn auth(yaml: &str) -> OidcAuth {
        serde_saphyr::from_str(&format!("issuer: https://sso.example.org\naudience: wasmspawner\n{yaml}"))
            .unwrap()
    }

    #[test]
    fn scopes_come_from_the_user_the_groups_and_the_token() {
        let auth =
            auth("user_scopes: {hub: ['admin:jupyterhub']}\ngroup_scopes: {staff: ['admin:notebook']}\n");
        for (name, groups, of_token, expected) in [
            ("ada", vec![], vec![], vec![ExecNotebook]),
            ("hub", vec!["guests"], vec![], vec![ExecNotebook, AdminJupyterhub]),
            ("ada", vec!["guests", "staff"], vec![], vec![ExecNotebook, AdminNotebook]),
            ("ada", vec!["Staff", "/staff", "hub"], vec![], vec![ExecNotebook]),
            ("ada", vec![], vec![AdminNotebook], vec![ExecNotebook, AdminNotebook]),
        ] {
            let groups: Vec<String> = groups.into_iter().map(str::to_owned).collect();
            let scopes =
                auth.scopes(&Username::parse(name).unwrap(), &groups, of_token.into_iter().collect());
            assert_eq!(scopes, expected.into_iter().collect(), "{name} {groups:?}");
        }
        let strict = OidcAuth { implied_scopes: ScopeSet::new(), ..auth };
        let ada = Username::parse("ada").unwrap();
        assert_eq!(strict.scopes(&ada, &[], ScopeSet::new()), ScopeSet::new());
    }

    #[test]
    fn a_setting_out_of_range_is_refused_with_its_key() {
        for (yaml, expected) in [
            ("cache: 25h", "auth.oidc.cache: 25h is out of range"),
            ("cache: 0s", "auth.oidc.cache: 0s is out of range"),
            ("timeout: 2m", "auth.oidc.timeout: 2m is out of range"),
            ("leeway: 6m", "auth.oidc.leeway: is out of range"),
            ("leeway: -1s", "auth.oidc.leeway: is out of range"),
            ("gid_claim: gid", "auth.oidc.gid_claim: is set without uid_claim"),
        ] {
            let error = auth(yaml).check().unwrap_err().to_string();
            assert!(error.contains(expected), "{yaml}: {error}");
        }
        for yaml in
            ["leeway: 0s", "leeway: 5m", "cache: 24h", "scope_claim: null", "uid_claim: uid\ngid_claim: gid"]
        {
            assert_eq!(auth(yaml).check().map_err(|error| error.to_string()), Ok(()), "{yaml}");
        }
        let blank = OidcAuth { audience: " ".into(), ..auth("") };
        assert!(blank.check().unwrap_err().to_string().contains("auth.oidc.audience: is empty"));
    }
}
