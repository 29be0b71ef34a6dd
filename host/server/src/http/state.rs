//! What handlers are given. Each takes the part it needs.

use axum::extract::FromRef;
use tokio_util::sync::CancellationToken;

use super::auth::Authenticator;
use super::prefix::Prefix;
use crate::spawner::Labs;
use crate::telemetry::Metrics;

/// Everything the API works with.
#[derive(Clone, FromRef)]
pub struct Api {
    /// The labs.
    pub labs: Labs,
    /// Who calls.
    pub authenticator: Authenticator,
    /// What is counted.
    pub metrics: Metrics,
    /// Below which path the API is.
    pub prefix: Prefix,
    /// When the service stops; event streams end then, so that their readers reconnect to its successor.
    pub shutdown: CancellationToken,
}
