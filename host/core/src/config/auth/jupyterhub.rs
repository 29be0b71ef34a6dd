//! `auth.jupyterhub`: callers present JupyterHub's own tokens.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::{BaseUrl, InvalidSetting};
use super::check_span;
use crate::names::{ServerName, Username};
use crate::users::access::{Rights, Scope, ScopeSet};

/// Callers present a JupyterHub token. The service asks the Hub about it and derives the scopes from the answer. Beside `oidc`
/// or `headers`, it asks about tokens of letters, digits, `-` and `_` alone, which are those that JupyterHub makes.
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
    /// Additional scopes by the user's groups at the Hub, for tokens that may do all that their user may: those that
    /// users make at the Hub without choosing scopes. The token of a server, a token with chosen scopes, and one that
    /// a server got when the user opened it, get nothing by a group.
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

    /// What a user's token is worth in this service. The Hub scope `access:servers!server=<user>/<server>`, which the
    /// API token of a server has, makes it worth `exec:notebook` for that server. Somebody with whom a server is shared
    /// has the same scope for it, under another user's name, and gets nothing for it.
    pub fn user_rights(&self, user: &Username, hub_scopes: &[String], groups: &[String]) -> Rights {
        let of_server = format!("access:servers!server={user}/");
        let servers = hub_scopes.iter().filter_map(|hub_scope| hub_scope.strip_prefix(&of_server));
        Rights {
            scopes: self.user_scopes(user, hub_scopes, groups),
            servers: servers.filter_map(|server| ServerName::parse(server).ok()).collect(),
        }
    }

    fn user_scopes(&self, user: &Username, hub_scopes: &[String], groups: &[String]) -> ScopeSet {
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
        let groups = if is_unrestricted(user, hub_scopes) { groups } else { &[] };
        let by_group = groups.iter().filter_map(|group| self.groups.get(group)).flatten().copied();
        by_scope.chain(by_group).collect()
    }

    /// The scopes that a Hub service's token gives in this service. A service owns no lab, whatever its name is.
    pub fn service_scopes(&self, service: &str, hub_scopes: &[String]) -> ScopeSet {
        let unlimited = hub_scopes.iter().filter_map(|hub_scope| self.scopes.get(hub_scope)).flatten();
        let named = self.services.get(service).into_iter().flatten();
        unlimited.chain(named).copied().filter(|scope| *scope != Scope::ExecNotebook).collect()
    }
}

/// True if the token may do all that its user may. The Hub tells a user's groups to every token of the user, also to the
/// one that another user's server gets when the user opens it, so the groups say nothing about the token. A token that
/// may make tokens of the user can make one without any restriction (JupyterHub, "Scopes", `tokens`); no other can.
fn is_unrestricted(user: &Username, hub_scopes: &[String]) -> bool {
    let all = |name: &str| {
        let own = format!("{name}!user={user}");
        hub_scopes.iter().any(|scope| *scope == name || *scope == own)
    };
    all("tokens") && all("servers")
}

fn default_cache() -> SignedDuration {
    SignedDuration::from_secs(30)
}

fn default_timeout() -> SignedDuration {
    SignedDuration::from_secs(5)
}

/// A token that may start its owner's servers at the Hub may do so in this service; a token that may administer all
/// servers is an administrator's. The API token of a server has neither of these Hub scopes: see
/// [`JupyterHubAuth::user_rights`].
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
    fn scopes_of_a_user_come_from_hub_scopes_and_from_groups_if_the_token_is_unrestricted() {
        let auth = auth("groups: {staff: ['admin:notebook']}\n");
        let ada = Username::parse("ada").unwrap();
        for (hub_scopes, groups, expected) in [
            (vec!["servers!user=ada"], vec![], scopes(&[Scope::ExecNotebook])),
            (vec!["servers!user=bob", "servers!server=ada/x"], vec![], scopes(&[])),
            (vec!["admin:servers!user=ada"], vec![], scopes(&[])),
            (vec!["users:activity!user=ada", "access:servers!server=ada/"], vec![], scopes(&[])),
            (vec!["admin:servers", "servers"], vec![], scopes(&[Scope::ExecNotebook, Scope::AdminNotebook])),
            // A token of a user that Hubs 5 and 6 made without chosen scopes, in part.
            (
                vec!["access:servers!user=ada", "servers!user=ada", "tokens!user=ada"],
                vec!["staff", "other"],
                scopes(&[Scope::ExecNotebook, Scope::AdminNotebook]),
            ),
            (vec!["servers", "tokens"], vec!["staff"], scopes(&[Scope::ExecNotebook, Scope::AdminNotebook])),
            // Those of others, of servers, and with chosen scopes.
            (vec![], vec!["staff"], scopes(&[])),
            (vec!["tokens!user=bob", "servers!user=bob"], vec!["staff"], scopes(&[])),
            (vec!["access:servers!server=ada/", "users:activity!user=ada"], vec!["staff"], scopes(&[])),
            (vec!["servers!user=ada", "read:tokens!user=ada"], vec!["staff"], scopes(&[Scope::ExecNotebook])),
            (vec!["tokens!user=ada", "servers!server=ada/"], vec!["staff"], scopes(&[])),
        ] {
            let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
            let actual = auth.user_scopes(&ada, &owned(&hub_scopes), &owned(&groups));
            assert_eq!(actual, expected, "{hub_scopes:?} {groups:?}");
        }
    }

    #[test]
    fn the_token_of_a_server_is_worth_that_server_of_the_same_user() {
        let auth = auth("");
        for (user, hub_scopes, expected) in [
            ("ada", vec!["access:servers!server=ada/gpu", "users:activity!user=ada"], vec!["gpu"]),
            ("ada", vec!["access:servers!server=ada/"], vec![""]),
            ("ada", vec!["access:servers!server=ada/a", "access:servers!server=ada/b"], vec!["a", "b"]),
            // A server that was shared with bob, a limit to other things, and a name that begins alike.
            ("bob", vec!["access:servers!server=ada/gpu"], vec![]),
            ("ada", vec!["access:servers!user=ada", "access:servers", "read:servers!server=ada/x"], vec![]),
            ("ad", vec!["access:servers!server=ada/gpu"], vec![]),
        ] {
            let hub_scopes: Vec<String> = hub_scopes.into_iter().map(str::to_owned).collect();
            let rights = auth.user_rights(&Username::parse(user).unwrap(), &hub_scopes, &[]);
            let servers: Vec<&str> = rights.servers.iter().map(ServerName::as_str).collect();
            assert_eq!(servers, expected, "{user} {hub_scopes:?}");
            assert_eq!(rights.scopes, scopes(&[]), "{user} {hub_scopes:?}");
        }
    }

    #[test]
    fn a_hub_service_gets_the_scopes_listed_under_its_name() {
        let auth = auth("services: {hub: ['admin:jupyterhub']}\n");
        assert_eq!(auth.service_scopes("hub", &[]), scopes(&[Scope::AdminJupyterhub]));
        assert_eq!(auth.service_scopes("other", &["servers!user=ada".into()]), scopes(&[]));
        assert_eq!(auth.service_scopes("ada", &["servers".into()]), scopes(&[]));
    }
}
