//! Dask pools that a lab starts: a scheduler, and as many workers as the pool has at the moment. Its workers are all
//! alike, or there are several groups of them.

mod demand;
mod group;
mod launch;
mod range;
mod workers;

pub use demand::{Demand, share};
pub use group::{GroupRange, MAX_GROUPS, Resize, WorkerCounts, WorkerGroup};
pub use launch::{
    MOUNT_PATH, POOL_PORTS, Pool, PoolLaunch, PoolPorts, PoolPrograms, SCHEDULER_VARIABLE,
    WORKER_GROUP_VARIABLE, WORKER_VARIABLE, WorkerSize,
};
pub use range::{MAX_WORKERS, WorkerRange};
pub use workers::{WorkerPlan, WorkerPod, plan_workers};
