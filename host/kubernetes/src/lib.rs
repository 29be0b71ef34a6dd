//! The service's side of Kubernetes: requests, observed objects, the records of labs, other clusters and environments.

pub mod clusters;
pub mod environments;
pub mod k8s;
pub mod random_token;
pub mod records;
pub mod short_watch;
pub mod site_blueprints;
pub mod store;
pub mod workloads;
