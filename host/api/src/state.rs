//! The state of the handlers. Each handler takes the part that it needs.

use axum::extract::FromRef;
use tokio_util::sync::CancellationToken;

use super::auth::Authenticator;
use super::config_reload::ConfigReload;
use super::fair_use::FairUse;
use super::openapi::Description;
use crate::request::prefix::{NubladoPrefix, Prefix};
use wasmspawner_spawner::prepull::LivePrepulls;
use wasmspawner_spawner::{Choices, Kernels, Labs, Leftovers, Pools, Rules, SiteEnvironments};
use wasmspawner_telemetry::Metrics;

/// The shared state of all handlers.
#[derive(Clone, FromRef)]
pub struct Api {
    /// The labs of this service.
    pub labs: Labs,
    /// Identifies the sender of a request.
    pub authenticator: Authenticator,
    /// Reads the configuration again.
    pub config: ConfigReload,
    /// The images that nodes pull in advance.
    pub prepulls: LivePrepulls,
    /// The limits on concurrent use by one user.
    pub fair_use: FairUse,
    /// Counts requests and readers of event streams.
    pub metrics: Metrics,
    /// The path below which the API is served.
    pub prefix: Prefix,
    /// The path below which the dialect of Nublado is served, if it is.
    pub nublado_prefix: NubladoPrefix,
    /// The OpenAPI document.
    pub description: Description,
    /// Cancelled when this process does not lead any more. Event streams end then, and their readers connect to the next.
    pub shutdown: CancellationToken,
}

/// Views of the labs, for the handlers that need nothing else of them.
macro_rules! views {
    ($($view:ident),*) => {$(
        impl FromRef<Api> for $view {
            fn from_ref(api: &Api) -> Self {
                Self::new(api.labs.clone())
            }
        }
    )*};
}

views!(Kernels, Pools, Leftovers, SiteEnvironments, Rules);

impl FromRef<Api> for Choices {
    fn from_ref(api: &Api) -> Self {
        Self::new(api.labs.context().clone())
    }
}
