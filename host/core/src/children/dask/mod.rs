//! Dask pools that a lab starts: a scheduler, and as many workers as the pool has at the moment.

mod demand;
mod launch;
mod range;
mod workers;

pub use demand::{Demand, share};
pub use launch::{
    MOUNT_PATH, POOL_PORTS, Pool, PoolLaunch, PoolPorts, PoolPrograms, SCHEDULER_VARIABLE, WORKER_VARIABLE,
    WorkerSize,
};
pub use range::{MAX_WORKERS, WorkerRange};
pub use workers::{WorkerPlan, WorkerPod, plan_workers};
