//! Access rules: the rights that a credential gives, and the scopes that each action needs (SQR-066, "Credential scopes
//! required").

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::lab::LabKey;
use crate::names::{ServerName, Username};

/// A permission that a credential carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Scope {
    /// A user, for their own labs only.
    #[serde(rename = "exec:notebook")]
    ExecNotebook,
    /// The Hub: may read and stop every lab and see every form, but start none. Some texts of SQR-066 call this scope
    /// `admin:jupyterlab`.
    #[serde(rename = "admin:jupyterhub", alias = "admin:jupyterlab")]
    AdminJupyterhub,
    /// An administrator: may do everything for every user.
    #[serde(rename = "admin:notebook")]
    AdminNotebook,
}

/// The scopes of one credential.
pub type ScopeSet = BTreeSet<Scope>;

/// The rights that a credential gives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rights {
    /// The scopes of the credential.
    pub scopes: ScopeSet,
    /// Servers of the owner for which the credential counts as `exec:notebook`, whatever its scopes are. JupyterHub's
    /// API token of a server gives that right for this server alone.
    pub servers: BTreeSet<ServerName>,
}

impl From<ScopeSet> for Rights {
    fn from(scopes: ScopeSet) -> Self {
        Self { scopes, servers: BTreeSet::new() }
    }
}

impl Rights {
    /// Returns true when the credential may act on labs of other users.
    pub fn is_administrative(&self) -> bool {
        ADMINS.iter().any(|scope| self.scopes.contains(scope))
    }

    /// Returns true when a lab may get the credential that started it: the lab belongs to the credential's owner, and
    /// the credential gives no rights over the labs of others. A lab runs the code of its user, so an administrator's
    /// credential never goes into one.
    pub fn may_enter_lab(&self, permit: Permit) -> bool {
        permit == Permit::Owner && !self.is_administrative()
    }
}

/// The text is not a scope of this service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a scope is `exec:notebook`, `admin:jupyterhub` or `admin:notebook`")]
pub struct NotAScope;

impl Scope {
    /// The scope as it is written in configuration files and tokens.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ExecNotebook => "exec:notebook",
            Self::AdminJupyterhub => "admin:jupyterhub",
            Self::AdminNotebook => "admin:notebook",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Scope {
    type Err = NotAScope;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "exec:notebook" => Ok(Self::ExecNotebook),
            "admin:jupyterhub" | "admin:jupyterlab" => Ok(Self::AdminJupyterhub),
            "admin:notebook" => Ok(Self::AdminNotebook),
            _ => Err(NotAScope),
        }
    }
}

/// An action that a caller wants to perform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access<'a> {
    /// List everyone's labs.
    ListLabs,
    /// Read which images registries and nodes have.
    ReadImages,
    /// Read about this lab, or stop it.
    ReadOrStop(&'a LabKey),
    /// Read what this lab has printed. The Hub may not, nor the lab's own token: neither needs it.
    ReadLogs(&'a LabKey),
    /// See the form with which this lab is started.
    ReadForm(&'a LabKey),
    /// Start this lab. The Hub may not: whoever holds its credential would run code as anyone.
    Spawn(&'a LabKey),
    /// Delete the volumes of a server that is deleted.
    ReleaseVolumes,
    /// Read or reload the site's policies.
    ManagePolicies,
    /// List and delete objects that belong to no lab.
    ManageOrphans,
    /// Show environments, claims and targets, and free or remove targets.
    ManageEnvironments,
}

/// The reason why an action is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permit {
    /// The lab is the caller's own.
    Owner,
    /// The caller may perform the action for every user.
    Administrator,
}

/// The action is not allowed. The error lists the scopes that would allow it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    /// The credential has none of the scopes that this action needs.
    #[error("this needs one of the scopes {}", listed(.0))]
    Scope(&'static [Scope]),
    /// The credential is valid for the caller's own labs only.
    #[error("this is another user's lab; it needs one of the scopes {}", listed(.0))]
    AnotherUser(&'static [Scope]),
    /// The credential is valid for other servers of the caller only.
    #[error("the token is valid for another server of this user; this one needs one of the scopes {}", listed(.0))]
    AnotherServer(&'static [Scope]),
}

const ADMINS: &[Scope] = &[Scope::AdminJupyterhub, Scope::AdminNotebook];
const ADMIN: &[Scope] = &[Scope::AdminNotebook];
const OWNER_OR_ADMIN: &[Scope] = &[Scope::ExecNotebook, Scope::AdminNotebook];

/// Decides whether `caller`, holding a credential with these rights, may perform `action`, and why.
pub fn permit(caller: &Username, rights: &Rights, action: Access<'_>) -> Result<Permit, Forbidden> {
    let (lab, admins) = match action {
        Access::ListLabs | Access::ReadImages | Access::ReleaseVolumes => (None, ADMINS),
        Access::ManagePolicies | Access::ManageOrphans | Access::ManageEnvironments => (None, ADMIN),
        Access::ReadOrStop(lab) | Access::ReadForm(lab) => (Some(lab), ADMINS),
        Access::ReadLogs(lab) | Access::Spawn(lab) => (Some(lab), ADMIN),
    };
    if admins.iter().any(|scope| rights.scopes.contains(scope)) {
        return Ok(Permit::Administrator);
    }
    match lab {
        None => Err(Forbidden::Scope(admins)),
        Some(lab) if lab.user != *caller => Err(Forbidden::AnotherUser(admins)),
        Some(_) if rights.scopes.contains(&Scope::ExecNotebook) => Ok(Permit::Owner),
        Some(_) if matches!(action, Access::ReadLogs(_)) => Err(Forbidden::Scope(OWNER_OR_ADMIN)),
        Some(lab) if rights.servers.contains(&lab.server) => Ok(Permit::Owner),
        Some(_) if rights.servers.is_empty() => Err(Forbidden::Scope(OWNER_OR_ADMIN)),
        Some(_) => Err(Forbidden::AnotherServer(OWNER_OR_ADMIN)),
    }
}

fn listed(scopes: &[Scope]) -> String {
    scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lab(user: &str, server: &str) -> LabKey {
        LabKey::new(Username::parse(user).unwrap(), ServerName::parse(server).unwrap())
    }

    /// Columns: the action; then, first for the owner and then for another user, whether each of these is enough: no
    /// scope, `exec:notebook`, `admin:jupyterhub`, `admin:notebook`. The rows follow the routes of SQR-066; the form is
    /// also for the Hub, which shows it.
    #[test]
    fn each_kind_of_access_accepts_exactly_its_scopes() {
        let (owner, other) = (Username::parse("rra").unwrap(), Username::parse("adam").unwrap());
        let lab = lab("rra", "gpu");
        let table = [
            (Access::ListLabs, [false, false, true, true], [false, false, true, true]),
            (Access::ReadImages, [false, false, true, true], [false, false, true, true]),
            (Access::ReleaseVolumes, [false, false, true, true], [false, false, true, true]),
            (Access::ReadOrStop(&lab), [false, true, true, true], [false, false, true, true]),
            (Access::ReadForm(&lab), [false, true, true, true], [false, false, true, true]),
            (Access::ReadLogs(&lab), [false, true, false, true], [false, false, false, true]),
            (Access::Spawn(&lab), [false, true, false, true], [false, false, false, true]),
            (Access::ManagePolicies, [false, false, false, true], [false, false, false, true]),
            (Access::ManageOrphans, [false, false, false, true], [false, false, false, true]),
            (Access::ManageEnvironments, [false, false, false, true], [false, false, false, true]),
        ];
        let held: [ScopeSet; 4] = [
            ScopeSet::new(),
            [Scope::ExecNotebook].into(),
            [Scope::AdminJupyterhub].into(),
            [Scope::AdminNotebook].into(),
        ];
        for (action, for_owner, for_other) in table {
            for (caller, expected) in [(&owner, for_owner), (&other, for_other)] {
                let allowed =
                    held.each_ref().map(|scopes| permit(caller, &scopes.clone().into(), action).is_ok());
                assert_eq!(allowed, expected, "{action:?} by {caller}");
            }
        }
    }

    #[test]
    fn the_token_of_a_server_is_valid_for_that_server_of_its_owner_alone() {
        let servers = [ServerName::parse("gpu").unwrap()].into();
        let rights = Rights { scopes: ScopeSet::new(), servers };
        let (owner, other) = (Username::parse("rra").unwrap(), Username::parse("adam").unwrap());
        for (caller, key, allowed) in [
            (&owner, lab("rra", "gpu"), true),
            (&owner, lab("rra", "cpu"), false),
            (&owner, LabKey::default_server(owner.clone()), false),
            (&owner, lab("adam", "gpu"), false),
            (&other, lab("rra", "gpu"), false),
        ] {
            for action in [Access::Spawn(&key), Access::ReadOrStop(&key), Access::ReadForm(&key)] {
                assert_eq!(permit(caller, &rights, action).is_ok(), allowed, "{action:?} by {caller}");
            }
        }
        assert!(permit(&owner, &rights, Access::ListLabs).is_err());
        let own = lab("rra", "gpu");
        assert!(permit(&owner, &rights, Access::ReadLogs(&own)).is_err(), "a lab does not read logs");
    }

    #[test]
    fn a_lab_gets_its_owner_s_token_unless_it_is_an_administrator_s() {
        let key = lab("rra", "");
        for (scopes, expected) in [
            (vec![Scope::ExecNotebook], true),
            (vec![Scope::ExecNotebook, Scope::AdminJupyterhub], false),
            (vec![Scope::ExecNotebook, Scope::AdminNotebook], false),
            (vec![Scope::AdminNotebook], false),
        ] {
            let rights = Rights::from(scopes.iter().copied().collect::<ScopeSet>());
            let permit = permit(&key.user, &rights, Access::Spawn(&key)).unwrap();
            assert_eq!(rights.may_enter_lab(permit), expected, "{scopes:?}");
        }
    }

    #[test]
    fn a_refusal_names_the_sufficient_scopes() {
        let (rra, adam) = (Username::parse("rra").unwrap(), Username::parse("adam").unwrap());
        let key = lab("rra", "gpu");
        let user = Rights::from(ScopeSet::from([Scope::ExecNotebook]));
        let server = Rights { scopes: ScopeSet::new(), servers: [ServerName::parse("cpu").unwrap()].into() };
        for (caller, rights, expected) in [
            (
                &adam,
                user,
                "this is another user's lab; it needs one of the scopes admin:jupyterhub, admin:notebook",
            ),
            (&rra, Rights::default(), "this needs one of the scopes exec:notebook, admin:notebook"),
            (
                &rra,
                server,
                "the token is valid for another server of this user; this one needs one of the scopes \
                 exec:notebook, admin:notebook",
            ),
        ] {
            let error = permit(caller, &rights, Access::ReadOrStop(&key)).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn admin_jupyterlab_is_read_as_admin_jupyterhub() {
        assert_eq!("admin:jupyterlab".parse(), Ok(Scope::AdminJupyterhub));
        assert_eq!(serde_json::from_str::<Scope>(r#""admin:jupyterlab""#).unwrap(), Scope::AdminJupyterhub);
        assert!("exec:everything".parse::<Scope>().is_err());
    }
}
