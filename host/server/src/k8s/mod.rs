//! Requests to the Kubernetes API: create, delete, read and list. Nothing is decided here. Retries are made here and
//! nowhere else.

mod changing_client;
mod claims;
mod connect;
mod counted;
mod create;
mod custom;
mod definition;
mod delete;
mod error;
mod fair_queue;
mod fault_point;
mod health;
mod list;
mod provision;
mod pull_pods;
mod rate_limiter;
mod records;
mod retry;
mod secrets;
mod status_reason;
mod timed;
mod workloads;

pub(crate) use changing_client::ChangingClient;
pub use claims::Claims;
pub use connect::{ConnectError, Connection};
pub(crate) use create::belongs_to;
pub use create::{CreatedLab, Creator};
pub(crate) use custom::{CustomChange, CustomResources};
pub use definition::install_definitions;
pub use delete::{Deleter, DeletionAnswer, OwnedObject};
pub use error::{Causes, KubernetesError};
pub(crate) use fair_queue::on_behalf_of;
pub(crate) use fault_point::reached;
pub use health::Health;
pub(crate) use list::{list, list_some};
pub(crate) use provision::TargetObjects;
pub use pull_pods::PullPods;
pub(crate) use pull_pods::{Created, PullPodChange};
pub(crate) use rate_limiter::in_background;
pub use records::ConfigMapRecords;
pub(crate) use retry::{RetryPolicy, retrying};
pub use secrets::SiteSecrets;
pub use status_reason::StatusReason;
pub use workloads::{LabInWorkload, WorkloadRequests};
pub(crate) use workloads::{parse as parse_workload, workload_resource};
