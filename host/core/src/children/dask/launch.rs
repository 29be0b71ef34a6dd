//! The programs and files of a pool's pods.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::json;

use super::{WorkerGroup, WorkerRange};
use crate::names::WorkerGroupName;
use crate::values::options::Options;
use crate::values::secret::SecretString;

/// The directory of the programs and their input in the pods.
pub const MOUNT_PATH: &str = "/run/wasmspawner/dask";
/// Environment variable of a worker: the address of its scheduler.
pub const SCHEDULER_VARIABLE: &str = "WASMSPAWNER_DASK_SCHEDULER";
/// Environment variable of a worker: its name, which is that of its pod.
pub const WORKER_VARIABLE: &str = "WASMSPAWNER_DASK_WORKER";
/// Environment variable of a worker: the name of its group, if its pool has several.
pub const WORKER_GROUP_VARIABLE: &str = "WASMSPAWNER_DASK_GROUP";

/// The file with the token of the scheduler's pod. Workers do not have it.
const TOKEN: &str = "token";

/// The ports of a pool's pods. Every pod has an address of its own, so all have the same ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolPorts {
    /// The scheduler, for clients and workers.
    pub scheduler: u16,
    /// The dashboard of the scheduler.
    pub dashboard: u16,
    /// A worker, for its scheduler, its clients and other workers.
    pub worker: u16,
    /// The process that watches over a worker.
    pub nanny: u16,
}

/// The ports of every pool. Those of the scheduler and the dashboard are Dask's defaults.
pub const POOL_PORTS: PoolPorts =
    PoolPorts { scheduler: 8_786, dashboard: 8_787, worker: 8_788, nanny: 8_789 };

impl PoolPorts {
    /// Returns the ports of a scheduler's pod.
    pub fn of_scheduler(self) -> [u16; 2] {
        [self.scheduler, self.dashboard]
    }

    /// Returns the ports of a worker's pod.
    pub fn of_worker(self) -> [u16; 2] {
        [self.worker, self.nanny]
    }
}

/// A pool as its client requests it.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// The range of the number of workers, of all groups together.
    pub workers: WorkerRange,
    /// The groups of workers; empty if all are alike.
    pub groups: Vec<WorkerGroup>,
    /// The options in which the scheduler differs from the pool; empty if in none.
    pub scheduler_options: Options,
    /// Idle seconds after which the pool ends; `None` if it does not end by itself.
    pub idle_timeout: Option<u32>,
    /// True if the pool continues after the end of its lab, until it is idle.
    pub outlives_lab: bool,
    /// The certificate, as PEM, by which the scheduler, the workers and the clients recognize each other. The client
    /// creates it.
    pub certificate: String,
    /// The certificate's private key, as PEM.
    pub key: SecretString,
}

/// The source texts of the programs in the pods.
#[derive(Debug, Clone, Copy)]
pub struct PoolPrograms {
    /// Starts Dask's scheduler or worker.
    pub pod: &'static str,
    /// Runs within the scheduler, and adjusts the number of workers to the needs of the pool.
    pub keeper: &'static str,
    /// The client with which the keeper calls the service.
    pub link: &'static str,
    /// Keeps errors of one TLS connection from ending others, which some builds of Python need.
    pub tls: &'static str,
}

/// A pool, and the data with which its scheduler reaches the service.
#[derive(Clone)]
pub struct PoolLaunch {
    /// The pool.
    pub pool: Pool,
    /// The URL of the pool in the API.
    pub url: String,
    /// The token with which the scheduler authenticates. It is valid for this pool alone.
    pub token: SecretString,
    /// The programs.
    pub programs: PoolPrograms,
}

/// The resource limits of one worker, if it has any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerSize {
    /// Thousandths of a CPU.
    pub cpu_millis: Option<u64>,
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
}

impl WorkerSize {
    /// The number of threads of a worker.
    fn threads(self) -> Option<u64> {
        self.cpu_millis.map(|millis| millis.div_ceil(1000).max(1))
    }
}

/// Shows nothing secret.
impl fmt::Debug for PoolLaunch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolLaunch").field("url", &self.url).finish_non_exhaustive()
    }
}

impl PoolLaunch {
    /// Returns the files of the scheduler's pod, by name. All of them are kept secret. `size` is that of all workers, and
    /// `groups` are those of the workers of each group.
    pub fn files(
        &self,
        size: WorkerSize,
        groups: &[(WorkerGroupName, WorkerSize)],
    ) -> BTreeMap<&'static str, Vec<u8>> {
        let group = |(name, size): &(WorkerGroupName, WorkerSize)| json!({ "name": name, "threads": size.threads(), "memory_bytes": size.memory_bytes });
        let pool = json!({
            "url": self.url,
            "scheduler_port": POOL_PORTS.scheduler,
            "dashboard_port": POOL_PORTS.dashboard,
            "worker_port": POOL_PORTS.worker,
            "nanny_port": POOL_PORTS.nanny,
            "threads": size.threads(),
            "memory_bytes": size.memory_bytes,
            "groups": groups.iter().map(group).collect::<Vec<_>>(),
            "idle_seconds": self.pool.idle_timeout,
        });
        BTreeMap::from([
            ("dask_pod.py", self.programs.pod.as_bytes().to_vec()),
            ("dask_keeper.py", self.programs.keeper.as_bytes().to_vec()),
            ("service_link.py", self.programs.link.as_bytes().to_vec()),
            ("dask_tls.py", self.programs.tls.as_bytes().to_vec()),
            ("pool.json", pool.to_string().into_bytes()),
            ("tls.crt", self.pool.certificate.clone().into_bytes()),
            ("tls.key", self.pool.key.expose().as_bytes().to_vec()),
            (TOKEN, self.token.expose().as_bytes().to_vec()),
        ])
    }

    /// Returns true if workers have the file, too: every file except the scheduler's token.
    pub fn is_of_workers(file: &str) -> bool {
        file != TOKEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_gets_all_it_needs_and_a_log_gets_no_secret() {
        let pool = Pool {
            workers: WorkerRange::fixed(2),
            groups: Vec::new(),
            scheduler_options: Options::new(),
            idle_timeout: Some(600),
            outlives_lab: false,
            certificate: "the-certificate".into(),
            key: SecretString::new("the-key"),
        };
        let programs = PoolPrograms { pod: "pod()", keeper: "keeper()", link: "link()", tls: "tls()" };
        let launch =
            PoolLaunch { pool, url: "http://s/p".into(), token: SecretString::new("the-token"), programs };
        let gpu = WorkerSize { cpu_millis: Some(4000), memory_bytes: Some(7) };
        let groups = [(WorkerGroupName::constant("gpu"), gpu)];
        let files = launch.files(WorkerSize { cpu_millis: Some(1500), memory_bytes: None }, &groups);
        let text: serde_json::Value = serde_json::from_slice(&files["pool.json"]).unwrap();
        assert_eq!((&text["threads"], &text["memory_bytes"]), (&json!(2), &json!(null)));
        assert_eq!(text["groups"], json!([{ "name": "gpu", "threads": 4, "memory_bytes": 7 }]));
        assert_eq!((&text["url"], &text["idle_seconds"]), (&json!("http://s/p"), &json!(600)));
        let secret: Vec<_> = files.keys().filter(|name| !PoolLaunch::is_of_workers(name)).collect();
        assert_eq!(secret, [&"token"]);
        let shown = format!("{launch:?} {:?}", launch.pool);
        assert!(["the-key", "the-token"].iter().all(|secret| !shown.contains(secret)), "{shown}");
    }
}
