//! The REST API and its event streams. Handlers parse the request, call the spawner and map the result; they decide
//! nothing.

mod around;
pub mod auth;
mod body;
mod config;
mod config_reload;
mod dask_pools;
mod environments;
mod events;
mod fair_use;
mod forgotten;
mod history;
mod images;
mod kernels;
mod lab;
mod lab_status;
mod labs;
mod location;
mod openapi;
mod orphans;
mod path;
mod pod_program;
mod policies;
mod prefix;
mod prepulls;
mod probes;
mod problem;
mod ready;
mod refused;
mod request_id;
mod router;
mod server;
mod spawn;
mod spawn_form;
mod state;
mod tls;
mod volumes;
mod wire;

pub use config_reload::{ConfigReload, ConfigSource};
pub use fair_use::FairUse;
pub use prefix::Prefix;
pub use probes::probes;
pub use router::router;
pub use server::{Connections, serve};
pub use state::Api;
pub use tls::Tls;
