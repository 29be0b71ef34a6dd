//! A request to start a lab.

use std::collections::BTreeMap;

use crate::identity::Identity;
use crate::lab::LabKey;
use crate::names::EnvName;
use crate::options::Options;
use crate::secret::SecretString;

/// What somebody wants to start: parsed, not yet decided.
#[derive(Debug, Clone)]
pub struct SpawnRequest {
    /// Which lab.
    pub key: LabKey,
    /// Whose it is; the name is `key.user`.
    pub identity: Identity,
    /// The submission of the spawn form.
    pub options: Options,
    /// Environment from the Hub. Credentials in it end up in the lab's Secret.
    pub env: BTreeMap<EnvName, String>,
    /// The user's notebook token, mounted into the lab.
    pub token: SecretString,
    /// The name of who asks: the user, the Hub or an administrator.
    pub requested_by: String,
}
