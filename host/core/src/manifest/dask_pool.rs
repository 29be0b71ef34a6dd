//! The objects of a Dask pool: the scheduler's pod, and the objects that its workers share with it.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{EnvVar, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::child::{self, ParentPod, Program, ProgramFiles};
use super::objects::LabObjects;
use super::{
    claim, env_config_map, limit_range, network_policy, nss_config_map, pull_secret, resource_quota,
    service_account,
};
use crate::children::dask::{
    MOUNT_PATH, POOL_PORTS, PoolLaunch, SCHEDULER_VARIABLE, WORKER_VARIABLE, WorkerSize,
};
use crate::config::NamespaceReclaim;
use crate::names::labels::{DASK_SCHEDULER, DASK_WORKER, JOB_ID_LABEL};
use crate::policy::ValidatedSpawn;

/// The prefix of the programs' files in the pool's Secret.
const KEY_PREFIX: &str = "dask.";
/// The volume with the programs' files.
const VOLUME: &str = "wasmspawner-dask";

/// The objects of a pool, and the pod from which its workers are made.
pub struct PoolObjects {
    /// The scheduler's pod, and all objects that its workers share with it.
    pub objects: LabObjects,
    /// A worker's pod, without its name, its owner and the address of its scheduler.
    pub worker: Pod,
}

/// Builds the objects of a pool. `spawn` contains the decisions of the policies for one worker.
///
/// Workers have the image, the volumes, the resources, the user and the security settings that a lab of these options
/// would have. The scheduler has the same, except for extended resources such as GPUs, which it does not use.
pub fn build_dask_pool(spawn: &ValidatedSpawn, launch: &PoolLaunch, parent: &ParentPod) -> PoolObjects {
    let size = WorkerSize {
        cpu_millis: spawn.resources.cpu_limit_millis,
        memory_bytes: spawn.resources.memory_limit_bytes,
    };
    let files = launch.files(size);
    let names: Vec<&'static str> = files.keys().copied().collect();
    let of_workers = names.iter().copied().filter(|name| PoolLaunch::is_of_workers(name)).collect();
    let mut scheduler = child::pod(
        spawn,
        &Program {
            component: DASK_SCHEDULER,
            container: "dask-scheduler",
            volume: VOLUME,
            path: MOUNT_PATH,
            command: "dask_pod.py scheduler",
            ports: &POOL_PORTS.of_scheduler(),
            files: (KEY_PREFIX, names),
            beside: &parent.spawn,
        },
    );
    if !launch.pool.outlives_lab {
        scheduler.metadata.owner_references = Some(vec![parent.as_owner()]);
    }
    if let Some(spec) = &mut scheduler.spec {
        drop_devices(spec);
    }
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
    let lasts = launch.pool.outlives_lab;
    // A pool that outlives its lab needs its own objects, because the lab's are deleted with it. In the one namespace
    // of all labs there are no limits of one user.
    let has_limits = lasts && spawn.namespaces != NamespaceReclaim::Single;
    let objects = LabObjects {
        namespace: None,
        routes: Vec::new(),
        service_account: lasts.then(|| service_account::build(spawn)).flatten(),
        env: env_config_map::build(spawn),
        nss: nss_config_map::build(spawn),
        secret: child::secret(spawn, ProgramFiles { prefix: KEY_PREFIX, files }),
        pull_secret: pull_secret::build(spawn),
        claims: claim::build(spawn),
        resource_quota: has_limits.then(|| resource_quota::build(spawn)).flatten(),
        limit_range: has_limits.then(|| limit_range::build(spawn)).flatten(),
        network_policy: network_policy::of_child(
            spawn,
            &[POOL_PORTS.of_scheduler(), POOL_PORTS.of_worker()].concat(),
        ),
        pod: scheduler,
    };
    PoolObjects { objects, worker }
}

/// Builds a worker of a pool whose scheduler runs in `scheduler`, at `address`.
pub fn dask_worker(template: &Pod, name: &str, scheduler: &ParentPod, address: &str) -> Pod {
    let mut pod = template.clone();
    pod.metadata = ObjectMeta {
        name: Some(name.to_owned()),
        owner_references: Some(vec![scheduler.as_owner()]),
        ..pod.metadata
    };
    let variable =
        |name: &str, value: String| EnvVar { name: name.to_owned(), value: Some(value), value_from: None };
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
