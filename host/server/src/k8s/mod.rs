//! The Kubernetes room: applying, deleting, listing and watching. It decides nothing; retries live here and only here.

mod apply;
mod claims;
mod connect;
mod counted;
mod delete;
mod error;
mod list;
mod pace;
mod records;
mod retry;
mod secrets;
mod watch;

pub use apply::Applier;
pub use claims::Claims;
pub use connect::{ConnectError, Connection};
pub use delete::{Deleter, Deletion, PodToDelete};
pub use error::{Causes, KubernetesError};
pub use list::{Found, list_labs};
pub use records::Records;
pub use secrets::SiteSecrets;
pub use watch::{Change, watch_labs};
