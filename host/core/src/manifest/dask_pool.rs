//! The objects of a Dask pool: the scheduler's pod, and the objects that its workers share with it.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{EnvVar, Pod, PodSpec, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::child::{self, ParentPod, Program, ProgramFiles};
use super::objects::LabObjects;
use super::{
    claim, env_config_map, limit_range, network_policy, nss_config_map, pull_secret, resource_quota, secret,
    service_account,
};
use crate::children::dask::{
    MOUNT_PATH, POOL_PORTS, PoolLaunch, SCHEDULER_VARIABLE, WORKER_GROUP_VARIABLE, WORKER_VARIABLE,
    WorkerSize,
};
use crate::config::NamespaceReclaim;
use crate::names::WorkerGroupName;
use crate::names::labels::{DASK_GROUP_LABEL, DASK_SCHEDULER, DASK_WORKER, JOB_ID_LABEL};
use crate::policy::ValidatedSpawn;

/// The prefix of the programs' files in the pool's Secret.
const KEY_PREFIX: &str = "dask.";
/// The volume with the programs' files.
const VOLUME: &str = "wasmspawner-dask";

/// The objects of a pool, and the pods from which its workers are made.
pub struct PoolObjects {
    /// The scheduler's pod, and all objects that its workers share with it.
    pub objects: LabObjects,
    /// A worker's pod, without its name, its owner and the address of its scheduler. `None` if there are groups.
    pub worker: Option<Pod>,
    /// The same for each group.
    pub groups: Vec<GroupWorker>,
}

/// The pod from which the workers of a group are made.
pub struct GroupWorker {
    /// The name of the group.
    pub name: WorkerGroupName,
    /// The pod.
    pub pod: Pod,
}

/// The parts of a pool whose options differ from those of the pool, as the policies have decided about them.
#[derive(Default)]
pub struct PoolParts {
    /// The scheduler, if it differs.
    pub scheduler: Option<ValidatedSpawn>,
    /// The workers of each group.
    pub groups: Vec<(WorkerGroupName, ValidatedSpawn)>,
}

/// Two parts of a pool need different values at a place that they share.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{part} needs another value of {what} than the pool")]
pub struct PartConflict {
    part: String,
    what: String,
}

/// Builds the objects of a pool. `spawn` contains the decisions of the policies for one worker, and `parts` those for what
/// differs.
///
/// Workers have the image, the volumes, the resources, the user and the security settings that a lab of these options
/// would have. The scheduler has the same, except for extended resources such as GPUs, which it does not use.
///
/// # Errors
///
/// A credential of a part has the name of another credential.
pub fn build_dask_pool(
    spawn: &ValidatedSpawn,
    parts: &PoolParts,
    launch: &PoolLaunch,
    parent: &ParentPod,
) -> Result<PoolObjects, PartConflict> {
    let sizes: Vec<_> = parts.groups.iter().map(|(name, spawn)| (name.clone(), size(spawn))).collect();
    let files = launch.files(size(spawn), &sizes);
    let names: Vec<&'static str> = files.keys().copied().collect();
    let mut scheduler = child::pod(
        parts.scheduler.as_ref().unwrap_or(spawn),
        &Program {
            component: DASK_SCHEDULER,
            container: "dask-scheduler",
            volume: VOLUME,
            path: MOUNT_PATH,
            command: "dask_pod.py scheduler",
            ports: &POOL_PORTS.of_scheduler(),
            files: (KEY_PREFIX, names.clone()),
            beside: &parent.spawn,
        },
    );
    if let Some(own) = &parts.scheduler {
        add_own_env(&mut scheduler, own, spawn);
    }
    if !launch.pool.outlives_lab {
        scheduler.metadata.owner_references = Some(vec![parent.as_owner()]);
    }
    if let Some(spec) = &mut scheduler.spec {
        drop_devices(spec);
    }
    let worker = parts.groups.is_empty().then(|| worker(spawn, &names));
    let groups = parts.groups.iter().map(|(name, own)| {
        let mut pod = worker_of_group(name, own, &names);
        add_own_env(&mut pod, own, spawn);
        GroupWorker { name: name.clone(), pod }
    });
    let groups = groups.collect();
    let lasts = launch.pool.outlives_lab;
    // A pool that outlives its lab needs its own objects, because the lab's are deleted with it. In the one namespace
    // of all labs there are no limits of one user.
    let has_limits = lasts && spawn.namespaces != NamespaceReclaim::Single;
    let mut secret = child::secret(spawn, ProgramFiles { prefix: KEY_PREFIX, files });
    let mut claims = claim::build(spawn);
    for (part, own) in parts.named() {
        add_credentials(&mut secret, &part, own)?;
        let known: BTreeSet<_> = claims.iter().map(|claim| claim.metadata.name.clone()).collect();
        claims.extend(claim::build(own).into_iter().filter(|claim| !known.contains(&claim.metadata.name)));
    }
    let objects = LabObjects {
        namespace: None,
        routes: Vec::new(),
        service_account: lasts.then(|| service_account::build(spawn)).flatten(),
        env: env_config_map::build(spawn),
        nss: nss_config_map::build(spawn),
        secret,
        pull_secret: pull_secret::build(spawn),
        claims,
        resource_quota: has_limits.then(|| resource_quota::build(spawn)).flatten(),
        limit_range: has_limits.then(|| limit_range::build(spawn)).flatten(),
        network_policy: network_policy::of_child(
            spawn,
            &[POOL_PORTS.of_scheduler(), POOL_PORTS.of_worker()].concat(),
        ),
        pod: scheduler,
    };
    Ok(PoolObjects { objects, worker, groups })
}

impl PoolParts {
    /// Changes each part.
    pub fn each(&mut self, change: impl FnMut(&mut ValidatedSpawn)) {
        self.scheduler.iter_mut().chain(self.groups.iter_mut().map(|(_, spawn)| spawn)).for_each(change);
    }

    /// Returns all parts, each with its name for people.
    fn named(&self) -> impl Iterator<Item = (String, &ValidatedSpawn)> {
        let scheduler = self.scheduler.iter().map(|spawn| ("the scheduler".to_owned(), spawn));
        scheduler.chain(self.groups.iter().map(|(name, spawn)| (format!("the group `{name}`"), spawn)))
    }
}

fn size(spawn: &ValidatedSpawn) -> WorkerSize {
    WorkerSize {
        cpu_millis: spawn.resources.cpu_limit_millis,
        memory_bytes: spawn.resources.memory_limit_bytes,
    }
}

/// Builds a worker's pod, without its name.
fn worker(spawn: &ValidatedSpawn, files: &[&'static str]) -> Pod {
    let of_workers = files.iter().copied().filter(|name| PoolLaunch::is_of_workers(name)).collect();
    let mut worker = child::pod(
        spawn,
        &Program {
            component: DASK_WORKER,
            container: "dask-worker",
            volume: VOLUME,
            path: MOUNT_PATH,
            command: "dask_pod.py worker",
            ports: &POOL_PORTS.of_worker(),
            files: (KEY_PREFIX, of_workers),
            beside: &spawn.spawn,
        },
    );
    worker.metadata.name = None;
    if let Some(labels) = &mut worker.metadata.labels {
        // A worker has no operation of its own.
        labels.remove(JOB_ID_LABEL);
    }
    worker
}

/// Builds the pod of a worker of a group, without its name.
fn worker_of_group(group: &WorkerGroupName, spawn: &ValidatedSpawn, files: &[&'static str]) -> Pod {
    let mut pod = worker(spawn, files);
    pod.metadata.labels.get_or_insert_default().insert(DASK_GROUP_LABEL.to_owned(), group.to_string());
    for container in pod.spec.iter_mut().flat_map(|spec| &mut spec.containers) {
        container.env.get_or_insert_default().push(variable(WORKER_GROUP_VARIABLE, group.to_string()));
    }
    pod
}

/// Adds the variables in which a part differs from the pool to its pod. All parts have the variables of the pool, from
/// its `ConfigMap`; those in the pod itself have precedence.
fn add_own_env(pod: &mut Pod, own: &ValidatedSpawn, pool: &ValidatedSpawn) {
    let (own, pool) = (env_config_map::build(own).data, env_config_map::build(pool).data);
    let (own, pool) = (own.unwrap_or_default(), pool.unwrap_or_default());
    let differing: Vec<_> = own.into_iter().filter(|(name, value)| pool.get(name) != Some(value)).collect();
    for container in pod.spec.iter_mut().flat_map(|spec| &mut spec.containers) {
        let env = container.env.get_or_insert_default();
        // Kubernetes replaces `$(NAME)` here, and not in a `ConfigMap`.
        env.extend(differing.iter().map(|(name, value)| variable(name, value.replace('$', "$$"))));
    }
}

/// Adds the credentials of a part to the Secret of its pool.
fn add_credentials(secret: &mut Secret, part: &str, own: &ValidatedSpawn) -> Result<(), PartConflict> {
    let data = secret.data.get_or_insert_default();
    for (key, value) in secret::build(own).data.unwrap_or_default() {
        if data.entry(key.clone()).or_insert_with(|| value.clone()) != &value {
            return Err(PartConflict { part: part.to_owned(), what: format!("the credential `{key}`") });
        }
    }
    Ok(())
}

fn variable(name: &str, value: String) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value), value_from: None }
}

/// Builds a worker of a pool whose scheduler runs in `scheduler`, at `address`.
pub fn dask_worker(template: &Pod, name: &str, scheduler: &ParentPod, address: &str) -> Pod {
    let mut pod = template.clone();
    pod.metadata = ObjectMeta {
        name: Some(name.to_owned()),
        owner_references: Some(vec![scheduler.as_owner()]),
        ..pod.metadata
    };
    for container in pod.spec.iter_mut().flat_map(|spec| &mut spec.containers) {
        container.env.get_or_insert_default().extend([
            variable(SCHEDULER_VARIABLE, scheduler_address(address)),
            variable(WORKER_VARIABLE, name.to_owned()),
        ]);
    }
    pod
}

/// Returns the address of a scheduler, as Dask writes it.
pub fn scheduler_address(ip: &str) -> String {
    format!("tls://{}:{}", in_url(ip), POOL_PORTS.scheduler)
}

/// Returns the address of a scheduler's dashboard.
pub fn dashboard_url(ip: &str) -> String {
    format!("http://{}:{}", in_url(ip), POOL_PORTS.dashboard)
}

fn in_url(ip: &str) -> String {
    if ip.contains(':') { format!("[{ip}]") } else { ip.to_owned() }
}

/// Drops what only workers need: the resources that have a domain in their names, such as `nvidia.com/gpu`, and the
/// claims on devices, except those of init containers.
fn drop_devices(spec: &mut PodSpec) {
    for resources in spec.containers.iter_mut().filter_map(|container| container.resources.as_mut()) {
        for amounts in [&mut resources.limits, &mut resources.requests].into_iter().flatten() {
            amounts.retain(|name, _| !name.contains('/'));
        }
        resources.claims = None;
    }
    let inits = spec.init_containers.iter().flatten().filter_map(|container| container.resources.as_ref());
    let used: BTreeSet<&str> = inits
        .flat_map(|resources| resources.claims.iter().flatten())
        .map(|claim| claim.name.as_str())
        .collect();
    if let Some(claims) = &mut spec.resource_claims {
        claims.retain(|claim| used.contains(claim.name.as_str()));
    }
    spec.resource_claims.take_if(|claims| claims.is_empty());
}
