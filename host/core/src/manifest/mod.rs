//! Converts a validated spawn to the Kubernetes objects of a lab. All decisions and checks are made before, so building
//! cannot fail, and texts from users are never interpreted as templates.

mod baseline;
mod certificate;
mod child;
mod claim;
mod dask_pool;
mod default_resources;
mod env_config_map;
mod fs_group;
mod init_container;
mod injection;
mod kernel;
mod lab_container;
mod limit_range;
mod metadata;
mod namespace;
mod network_policy;
mod nss_config_map;
mod object_kind;
mod objects;
mod pod;
mod pod_security;
mod pull_secret;
mod resource_quota;
mod resources;
mod route;
mod scheduling;
mod secret;
mod service;
mod service_account;
mod spec_digest;
mod user_files;
mod volume;

pub use certificate::{
    CERTIFICATES, Certificate, IssuedCertificate, certificate_secret, dns_names, requested_certificate,
};
pub use child::ParentPod;
pub use dask_pool::{
    GroupWorker, PartConflict, PoolObjects, PoolParts, build_dask_pool, dashboard_url, dask_worker,
    scheduler_address,
};
pub use injection::{InjectedLab, Injection, build_injected, without_job_label};
pub use kernel::build_kernel;
pub use metadata::{environment_selector, service_selector, spawn_selector};
pub use object_kind::ObjectKind;
pub use objects::{
    CLAIMS, KINDS_BESIDE_WORKLOAD, KINDS_DELETED_BY_LABEL, KINDS_IN_OWN_CLUSTER, LabObject, LabObjects,
};
pub use route::{Route, build_routes, route_kinds};
pub use service::{headless_service, service_name};

use crate::config::NamespaceReclaim;
use crate::policy::ValidatedSpawn;

/// Builds the objects of a lab.
pub fn build(spawn: &ValidatedSpawn) -> LabObjects {
    let pod = pod::build(spawn);
    let env = env_config_map::build(spawn);
    let digest = spec_digest::digest(&pod, &env);
    // In the one namespace of all labs, the limits of one user would apply to all.
    let has_limits = spawn.namespaces != NamespaceReclaim::Single;
    LabObjects {
        namespace: namespace::build(spawn, &pod, &digest),
        service_account: service_account::build(spawn),
        env,
        nss: nss_config_map::build(spawn),
        secret: secret::build(spawn),
        pull_secret: pull_secret::build(spawn),
        claims: claim::build(spawn),
        resource_quota: has_limits.then(|| resource_quota::build(spawn)).flatten(),
        limit_range: has_limits.then(|| limit_range::build(spawn)).flatten(),
        network_policy: network_policy::build(spawn),
        routes: Vec::new(),
        pod,
    }
}
