//! The Kubernetes room: applying, deleting, listing and watching. It decides nothing; retries live here and only here.

mod apply;
mod connect;
mod counted;
mod delete;
mod error;
mod list;
mod records;
mod retry;
mod secrets;
mod watch;

pub use apply::Applier;
pub use connect::{ConnectError, Connection};
pub use delete::{Deleter, Deletion};
pub use error::{Causes, KubernetesError};
pub use list::{Found, list_labs};
pub use records::Records;
pub use secrets::read_secret;
pub use watch::{Change, watch_labs};
