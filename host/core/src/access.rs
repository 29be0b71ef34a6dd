//! Access rules: the scopes of a credential, and the scope that each action needs (SQR-066, "Credential scopes
//! required").

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::Username;

/// A permission that a credential carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Scope {
    /// A user, for their own labs only.
    #[serde(rename = "exec:notebook")]
    ExecNotebook,
    /// The Hub: may read and stop every lab. Some texts of SQR-066 call this scope `admin:jupyterlab`.
    #[serde(rename = "admin:jupyterhub", alias = "admin:jupyterlab")]
    AdminJupyterhub,
    /// An administrator: may do everything for every user.
    #[serde(rename = "admin:notebook")]
    AdminNotebook,
}

/// The scopes of one credential.
pub type ScopeSet = BTreeSet<Scope>;

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
    /// Read about this user's lab, or stop it.
    ReadOrStop(&'a Username),
    /// Start this user's lab, or see the form for it.
    Spawn(&'a Username),
    /// Delete the volumes of a server that is deleted.
    ReleaseVolumes,
    /// Read or reload the site's policies.
    ManagePolicies,
    /// List and delete objects that belong to no lab.
    ManageOrphans,
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
    /// The credential is valid for the caller's own lab only.
    #[error("this is another user's lab; it needs one of the scopes {}", listed(.0))]
    AnotherUser(&'static [Scope]),
}

const ADMINS: &[Scope] = &[Scope::AdminJupyterhub, Scope::AdminNotebook];
const ADMIN: &[Scope] = &[Scope::AdminNotebook];

/// Decides whether `caller`, holding `scopes`, may perform `action`, and why.
pub fn permit(caller: &Username, scopes: &ScopeSet, action: Access<'_>) -> Result<Permit, Forbidden> {
    let (owner, admins) = match action {
        Access::ListLabs | Access::ReleaseVolumes => (None, ADMINS),
        Access::ManagePolicies | Access::ManageOrphans => (None, ADMIN),
        Access::ReadOrStop(owner) => (Some(owner), ADMINS),
        Access::Spawn(owner) => (Some(owner), ADMIN),
    };
    if admins.iter().any(|scope| scopes.contains(scope)) {
        return Ok(Permit::Administrator);
    }
    match owner {
        Some(owner) if owner == caller && scopes.contains(&Scope::ExecNotebook) => Ok(Permit::Owner),
        Some(owner) if owner == caller => Err(Forbidden::Scope(&[Scope::ExecNotebook, Scope::AdminNotebook])),
        Some(_) => Err(Forbidden::AnotherUser(admins)),
        None => Err(Forbidden::Scope(admins)),
    }
}

fn listed(scopes: &[Scope]) -> String {
    scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns: the action; then, first for the owner and then for another user, whether each of these is enough: no
    /// scope, `exec:notebook`, `admin:jupyterhub`, `admin:notebook`. The rows follow the routes of SQR-066.
    #[test]
    fn each_kind_of_access_accepts_exactly_its_scopes() {
        let owner = Username::parse("rra").unwrap();
        let other = Username::parse("adam").unwrap();
        let table = [
            (Access::ListLabs, [false, false, true, true], [false, false, true, true]),
            (Access::ReadOrStop(&owner), [false, true, true, true], [false, false, true, true]),
            (Access::Spawn(&owner), [false, true, false, true], [false, false, false, true]),
            (Access::ManagePolicies, [false, false, false, true], [false, false, false, true]),
            (Access::ManageOrphans, [false, false, false, true], [false, false, false, true]),
        ];
        let held: [ScopeSet; 4] = [
            ScopeSet::new(),
            [Scope::ExecNotebook].into(),
            [Scope::AdminJupyterhub].into(),
            [Scope::AdminNotebook].into(),
        ];
        for (action, for_owner, for_other) in table {
            for (caller, expected) in [(&owner, for_owner), (&other, for_other)] {
                let allowed = held.each_ref().map(|scopes| permit(caller, scopes, action).is_ok());
                assert_eq!(allowed, expected, "{action:?} by {caller}");
            }
        }
    }

    #[test]
    fn a_refusal_names_the_sufficient_scopes() {
        let (rra, adam) = (Username::parse("rra").unwrap(), Username::parse("adam").unwrap());
        let error = permit(&adam, &[Scope::ExecNotebook].into(), Access::ReadOrStop(&rra)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "this is another user's lab; it needs one of the scopes admin:jupyterhub, admin:notebook"
        );
    }

    #[test]
    fn admin_jupyterlab_is_read_as_admin_jupyterhub() {
        assert_eq!("admin:jupyterlab".parse(), Ok(Scope::AdminJupyterhub));
        assert_eq!(serde_json::from_str::<Scope>(r#""admin:jupyterlab""#).unwrap(), Scope::AdminJupyterhub);
        assert!("exec:everything".parse::<Scope>().is_err());
    }
}
