//! The node: what all its pods share.

mod register;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use kube::Client;

pub(crate) use register::keep_registered;

use super::addresses::Addresses;
use super::clock::Clock;
use super::process::{StateDirectory, create_private};
use super::restart::Backoff;
use super::{BackoffOptions, KubeletOptions, OnShutdown, ProcessOptions, Runtime, SimulatedOptions};

/// CPU in thousandths, memory in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capacity {
    cpu_milli: u64,
    memory: u64,
    pods: u32,
}

impl Capacity {
    fn of_machine() -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Self { cpu_milli: cpus as u64 * 1000, memory: total_memory(&meminfo).unwrap_or(1 << 30), pods: 1000 }
    }

    /// More than any test asks for.
    fn simulated() -> Self {
        Self { cpu_milli: 10_000_000, memory: 1 << 50, pods: 100_000 }
    }
}

/// Bytes from the line `MemTotal:  24041544 kB`.
fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}

pub(crate) struct Node {
    pub(crate) client: Client,
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    capacity: Capacity,
    pub(crate) clock: Clock,
    pub(crate) retry: Duration,
    pub(crate) backoff: BackoffOptions,
    pub(crate) on_shutdown: OnShutdown,
    pub(crate) runtime: NodeRuntime,
    addresses: Mutex<Addresses>,
}

/// What runs this node's containers.
#[derive(Debug)]
pub(crate) enum NodeRuntime {
    Process { options: Arc<ProcessOptions>, state: StateDirectory },
    Simulated(SimulatedOptions),
}

impl Node {
    pub(crate) fn new(client: Client, options: KubeletOptions) -> io::Result<Self> {
        let mut labels = options.node_labels;
        for (key, value) in register::own_labels(&options.node_name) {
            labels.entry(key).or_insert(value);
        }
        let (runtime, clock, on_shutdown, capacity) = match options.runtime {
            Runtime::Process(process) => {
                let state = StateDirectory::new(&process.state_dir);
                create_private(state.path())?;
                let on_shutdown = process.on_shutdown;
                let runtime = NodeRuntime::Process { options: Arc::new(process), state };
                (runtime, Clock::Wall, on_shutdown, Capacity::of_machine())
            }
            // There is nothing that could be left running.
            Runtime::Simulated(simulated) => {
                let runtime = NodeRuntime::Simulated(simulated);
                (runtime, Clock::following_tokio(), OnShutdown::Keep, Capacity::simulated())
            }
        };
        Ok(Self {
            client,
            name: options.node_name,
            labels,
            capacity,
            clock,
            retry: options.retry,
            backoff: options.backoff,
            on_shutdown,
            runtime,
            addresses: Mutex::new(Addresses::new(options.pod_addresses)),
        })
    }

    pub(crate) fn addresses(&self) -> MutexGuard<'_, Addresses> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The waits between attempts to reach an API server that is away.
    pub(crate) fn transient() -> Backoff {
        Backoff::new(BackoffOptions { base: Duration::from_millis(200), max: Duration::from_secs(10) })
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("name", &self.name)
            .field("runtime", &self.runtime)
            .finish_non_exhaustive()
    }
}
