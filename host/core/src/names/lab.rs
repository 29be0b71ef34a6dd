//! Identifies a lab and an operation on it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::names::{ServerName, Username};

/// The name of the pod's port on which a lab's program listens.
pub const PORT_NAME: &str = "notebook";

/// One lab: a user's server. The default server has the empty name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct LabKey {
    /// The lab's user.
    pub user: Username,
    /// The user's server.
    pub server: ServerName,
}

impl LabKey {
    /// Creates the key of the lab of `user`'s server `server`.
    pub fn new(user: Username, server: ServerName) -> Self {
        Self { user, server }
    }

    /// Creates the key of the lab of the user's default server.
    pub fn default_server(user: Username) -> Self {
        Self { user, server: ServerName::default() }
    }
}

impl fmt::Display for LabKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.server.is_default() {
            write!(f, "{}", self.user)
        } else {
            write!(f, "{}/{}", self.user, self.server)
        }
    }
}

/// Identifies one operation on a lab. It is a `UUIDv7`, so that ids sort by the time the operation began. It is a label
/// of the lab's pod and the first part of every event id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct JobId(#[schemars(with = "String")] Uuid);

impl JobId {
    /// Wraps an id that the caller generated; this crate has neither clock nor randomness.
    pub fn new(id: Uuid) -> Self {
        Self(id)
    }

    /// Returns the nil id, which belongs to no operation.
    pub fn nil() -> Self {
        Self(Uuid::nil())
    }

    /// Returns the 16 bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl std::str::FromStr for JobId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::try_parse(text).map(Self)
    }
}
