//! JupyterHub's answers about a user, or about the owner of a token.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The fields that are read from the Hub's answer about a user (`GET /users/{name}`) or about the owner of a token
/// (`GET /user`). The Hub leaves out the fields that the token in the request may not read.
#[derive(Debug, Deserialize)]
pub struct HubUser {
    /// A user or a service.
    #[serde(default)]
    pub kind: OwnerKind,
    /// The name.
    pub name: String,
    /// The names of the user's groups, where the token may read them (`read:users:groups`).
    #[serde(default)]
    pub groups: Option<Vec<String>>,
    /// The scopes of the token; empty in answers about a user.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// The data that the authenticator stored about the user, where the token may read it (`admin:auth_state`).
    #[serde(default, deserialize_with = "tolerant")]
    pub auth_state: Option<AuthState>,
}

/// The kind of a token's owner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OwnerKind {
    /// A user, or one of the user's servers.
    #[default]
    User,
    /// A service of the Hub.
    Service,
}

/// The fields that are read from a user's `auth_state`, where an authenticator may put them.
#[derive(Debug, Default, Deserialize)]
pub struct AuthState {
    /// The UID.
    #[serde(default)]
    pub uid: Option<u32>,
    /// The GID of the primary group; without it, the UID is taken.
    #[serde(default)]
    pub gid: Option<u32>,
}

/// Reads `auth_state`, and ignores everything that is not understood. Authenticators put whatever they want into it,
/// and in any amount.
fn tolerant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<AuthState>, D::Error> {
    let text = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(text.get()).unwrap_or_default())
}
