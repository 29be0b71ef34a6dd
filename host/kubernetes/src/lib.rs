//! The service's side of Kubernetes: requests, observed objects, the records of labs, other clusters and environments.

pub mod clusters;
pub mod environments;
mod installation;
pub mod k8s;
pub mod leadership;
pub mod observed;
pub mod published_address;
pub mod random_token;
pub mod records;
mod short_request;
pub mod site_blueprints;
pub mod watches;
pub mod workloads;
