//! A request to start a lab.

use std::collections::BTreeMap;

use crate::children::dask::Pool;
use crate::children::kernel::Kernel;
use crate::names::lab::LabKey;
use crate::names::spawn_key::{ChildKey, ChildKind, SpawnKey};
use crate::names::{ChildName, EnvName};
use crate::policy::user_string::Wanted;
use crate::users::identity::Identity;
use crate::values::options::Options;
use crate::values::secret::SecretString;

/// A parsed request to start a lab, before the policies decide on it.
#[derive(Debug, Clone)]
pub struct SpawnRequest {
    /// The lab to start.
    pub key: LabKey,
    /// The lab's user; the username is `key.user`.
    pub identity: Identity,
    /// The blueprint, repository or workload of the lab, if the request names one besides its options.
    pub wanted: Wanted,
    /// The options that were submitted with the spawn form.
    pub options: Options,
    /// Environment variables from the Hub. Credentials among them go into the lab's Secret.
    pub env: BTreeMap<EnvName, String>,
    /// The user's notebook token, mounted into the lab.
    pub token: SecretString,
    /// Name of the caller: the user, the Hub or an administrator.
    pub requested_by: String,
}

/// A parsed request to start a child of a lab, before the policies decide on it.
#[derive(Debug, Clone)]
pub struct ChildRequest {
    /// The lab.
    pub lab: LabKey,
    /// The child's name, which the client chooses.
    pub name: ChildName,
    /// The lab's user.
    pub identity: Identity,
    /// Options of the spawn form in which the child differs from its lab.
    pub options: Options,
    /// Environment variables of the pods, besides those that the site gives every lab. A kernel's own variables are not
    /// among them: the kernel's launcher sets those.
    pub env: BTreeMap<EnvName, String>,
    /// The child to start.
    pub child: Child,
    /// The path of the child in the API, below the prefix.
    pub path: String,
    /// The user's token, mounted into the child's pods.
    pub token: SecretString,
    /// Name of the caller: the user or an administrator.
    pub requested_by: String,
}

/// A child that a lab can start.
#[derive(Debug, Clone)]
pub enum Child {
    /// A Jupyter kernel.
    Kernel(Kernel),
    /// A Dask pool.
    DaskPool(Pool),
}

impl Child {
    /// Returns the kind of the child.
    pub fn kind(&self) -> ChildKind {
        match self {
            Self::Kernel(_) => ChildKind::Kernel,
            Self::DaskPool(_) => ChildKind::DaskPool,
        }
    }
}

impl ChildRequest {
    /// Returns the key of the child.
    pub fn key(&self) -> SpawnKey {
        SpawnKey {
            lab: self.lab.clone(),
            child: Some(ChildKey { kind: self.child.kind(), name: self.name.clone() }),
        }
    }
}
