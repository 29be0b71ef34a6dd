//! From a validated spawn to the Kubernetes objects of a lab. Everything was decided and checked before: building
//! cannot fail, and nothing here reads a template or a user's text as anything but text.

mod claim;
mod env_config_map;
mod floor;
mod init_container;
mod lab_container;
mod limit_range;
mod metadata;
mod namespace;
mod network_policy;
mod nss_config_map;
mod objects;
mod pod;
mod pull_secret;
mod resource_quota;
mod resources;
mod scheduling;
mod secret;
mod service_account;
mod spec_digest;
mod user_files;
mod volume;

pub use lab_container::PORT_NAME;
pub use metadata::{
    INSTANCE, JOB_ID, MANAGED_BY, MANAGED_BY_VALUE, OPERATION, OPERATION_SPAWN, SERVER, SERVERNAME,
    SPEC_DIGEST, USER, USERNAME,
};
pub use objects::{LabObject, LabObjects};

use crate::policy::ValidatedSpawn;

/// The objects of a lab.
pub fn build(spawn: &ValidatedSpawn) -> LabObjects {
    let pod = pod::build(spawn);
    let env = env_config_map::build(spawn);
    let digest = spec_digest::of(&pod, &env);
    let mut rest: Vec<LabObject> = vec![
        service_account::build(spawn).into(),
        env.into(),
        nss_config_map::build(spawn).into(),
        secret::build(spawn).into(),
    ];
    rest.extend(pull_secret::build(spawn).map(LabObject::from));
    rest.extend(claim::build(spawn).into_iter().map(LabObject::from));
    rest.extend(resource_quota::build(spawn).map(LabObject::from));
    rest.extend(limit_range::build(spawn).map(LabObject::from));
    rest.extend(network_policy::build(spawn).map(LabObject::from));
    LabObjects::new(namespace::build(spawn, &digest), rest, pod)
}
