//! `auth.jupyterhub`: callers present JupyterHub's own tokens.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::{BaseUrl, InvalidSetting};
use super::check_span;
use crate::access::{Scope, ScopeSet};
use crate::names::Username;

/// Callers present a JupyterHub token. The service asks the Hub about it and derives the scopes from the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JupyterHubAuth {
    /// The Hub's API: `http://hub:8081/hub/api`.
    pub api_url: BaseUrl,
    /// How long the Hub's answer about a token is cached; at most an hour.
    #[serde(default = "default_cache")]
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub cache: SignedDuration,
    /// How long the Hub may take to answer; at most a minute.
    #[serde(default = "default_timeout")]
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub timeout: SignedDuration,
    /// Maps scopes that the Hub gives a token to scopes of this service. A Hub scope that is limited to the caller
    /// (`servers!user=<caller>`) gives `exec:notebook` at most. A Hub scope with any other limit gives nothing.
    #[serde(default = "default_scopes")]
    pub scopes: BTreeMap<String, ScopeSet>,
    /// Additional scopes by the user's groups at the Hub.
    #[serde(default)]
    pub groups: BTreeMap<String, ScopeSet>,
    /// Additional scopes by the name of a Hub service. The Hub itself calls as such a service.
    #[serde(default)]
    pub services: BTreeMap<String, ScopeSet>,
}

impl JupyterHubAuth {
    pub(super) fn check(&self) -> Result<(), InvalidSetting> {
        check_span("auth.jupyterhub.cache", self.cache, SignedDuration::from_hours(1))?;
        check_span("auth.jupyterhub.timeout", self.timeout, SignedDuration::from_mins(1))
    }

    /// The scopes that a user's token gives in this service.
    pub fn user_scopes(&self, user: &Username, hub_scopes: &[String], groups: &[String]) -> ScopeSet {
        let own = format!("user={user}");
        let by_scope = hub_scopes.iter().flat_map(|hub_scope| {
            let (name, limit) = match hub_scope.split_once('!') {
                Some((name, limit)) => (name, Some(limit)),
                None => (hub_scope.as_str(), None),
            };
            let useful = move |scope: &Scope| match limit {
                None => true,
                Some(_) => *scope == Scope::ExecNotebook,
            };
            let mine = limit.is_none_or(|limit| limit == own);
            self.scopes.get(name).filter(|_| mine).into_iter().flatten().copied().filter(useful)
        });
        let by_group = groups.iter().filter_map(|group| self.groups.get(group)).flatten().copied();
        by_scope.chain(by_group).collect()
    }

    /// The scopes that a Hub service's token gives in this service.
    pub fn service_scopes(&self, service: &str, hub_scopes: &[String]) -> ScopeSet {
        let unlimited = hub_scopes.iter().filter_map(|hub_scope| self.scopes.get(hub_scope)).flatten();
        let named = self.services.get(service).into_iter().flatten();
        unlimited.chain(named).copied().collect()
    }
}

fn default_cache() -> SignedDuration {
    SignedDuration::from_secs(30)
}

fn default_timeout() -> SignedDuration {
    SignedDuration::from_secs(5)
}

/// A token that may start its owner's servers at the Hub may do so in this service; a token that may administer all
/// servers is an administrator's. The token inside a running lab has neither of these Hub scopes.
fn default_scopes() -> BTreeMap<String, ScopeSet> {
    [
        ("servers".to_owned(), [Scope::ExecNotebook].into()),
        ("admin:servers".to_owned(), [Scope::AdminNotebook].into()),
    ]
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auth(yaml: &str) -> JupyterHubAuth {
        serde_saphyr::from_str(&format!("api_url: http://hub\n{yaml}")).unwrap()
    }

    fn scopes(list: &[Scope]) -> ScopeSet {
        list.iter().copied().collect()
    }

    #[test]
    fn scopes_of_a_user_come_from_hub_scopes_and_groups() {
        let auth = auth("groups: {staff: ['admin:notebook']}\n");
        let ada = Username::parse("ada").unwrap();
        for (hub_scopes, groups, expected) in [
            (vec!["servers!user=ada"], vec![], scopes(&[Scope::ExecNotebook])),
            (vec!["servers!user=bob", "servers!server=ada/x"], vec![], scopes(&[])),
            (vec!["admin:servers!user=ada"], vec![], scopes(&[])),
            (vec!["users:activity!user=ada", "access:servers!server=ada/"], vec![], scopes(&[])),
            (vec!["admin:servers", "servers"], vec![], scopes(&[Scope::ExecNotebook, Scope::AdminNotebook])),
            (vec![], vec!["staff", "other"], scopes(&[Scope::AdminNotebook])),
        ] {
            let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
            let actual = auth.user_scopes(&ada, &owned(&hub_scopes), &owned(&groups));
            assert_eq!(actual, expected, "{hub_scopes:?} {groups:?}");
        }
    }

    #[test]
    fn a_hub_service_gets_the_scopes_listed_under_its_name() {
        let auth = auth("services: {hub: ['admin:jupyterhub']}\n");
        assert_eq!(auth.service_scopes("hub", &[]), scopes(&[Scope::AdminJupyterhub]));
        assert_eq!(auth.service_scopes("other", &["servers!user=ada".into()]), scopes(&[]));
    }
}
