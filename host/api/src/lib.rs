//! The REST API and its event streams. Handlers parse the request, call the spawner and map the result; they decide
//! nothing.

pub mod auth;
mod config_reload;
mod connections;
mod dialects;
mod fair_use;
mod openapi;
mod problem;
mod request;
mod route;
mod router;
mod routes;
mod state;
mod wire;

pub use config_reload::{ConfigReload, ConfigSource};
pub use connections::Connections;
pub use connections::server::serve;
pub use connections::tls::Tls;
pub use fair_use::FairUse;
pub use openapi::Description;
pub use request::prefix::{NubladoPrefix, Prefix};
pub use router::router;
pub use routes::probes::probes;
pub use state::Api;
