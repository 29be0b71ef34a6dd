//! A request to start a lab.

use std::collections::BTreeMap;

use crate::identity::Identity;
use crate::kernel::Kernel;
use crate::lab::LabKey;
use crate::names::{ChildName, EnvName};
use crate::options::Options;
use crate::secret::SecretString;

/// A parsed request to start a lab, before policies have decided about it.
#[derive(Debug, Clone)]
pub struct SpawnRequest {
    /// The lab to start.
    pub key: LabKey,
    /// The lab's user; the username is `key.user`.
    pub identity: Identity,
    /// The options that were submitted with the spawn form.
    pub options: Options,
    /// Environment variables from the Hub. Credentials among them go into the lab's Secret.
    pub env: BTreeMap<EnvName, String>,
    /// The user's notebook token, mounted into the lab.
    pub token: SecretString,
    /// Name of the caller: the user, the Hub or an administrator.
    pub requested_by: String,
}

/// A parsed request to start a kernel of a lab, before policies have decided about it.
#[derive(Debug, Clone)]
pub struct KernelRequest {
    /// The lab.
    pub lab: LabKey,
    /// The kernel's id, which its client chooses.
    pub name: ChildName,
    /// The lab's user.
    pub identity: Identity,
    /// Options of the spawn form in which the kernel differs from its lab.
    pub options: Options,
    /// The kernel.
    pub kernel: Kernel,
    /// The path of the kernel in the API, below the prefix.
    pub path: String,
    /// The user's token, mounted into the kernel's pod.
    pub token: SecretString,
    /// Name of the caller: the user or an administrator.
    pub requested_by: String,
}
