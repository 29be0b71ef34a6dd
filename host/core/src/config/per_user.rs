//! `limits.per_user`: what one user may do at once, so that nobody else notices.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one user may do at once. Administrators and the Hub act for everybody, and are not limited; how many labs a user
/// has is limited also when others start them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PerUserLimits {
    /// Requests per second on average. Ten seconds' worth may come at once; further ones wait for up to a second and are
    /// then refused with status 429.
    pub requests_per_second: NonZeroU32,
    /// Requests that are answered at the same time, event streams excepted. Further ones wait for up to a second and are
    /// then refused with status 429.
    pub requests_at_once: NonZeroU32,
    /// Requests to start a lab, per minute. All of a minute's may come at once; further ones are refused with status 429.
    pub spawns_per_minute: NonZeroU32,
    /// Requests to start a kernel or a Dask pool, per minute. All of a minute's may come at once; further ones are refused with status 429.
    pub kernel_starts_per_minute: NonZeroU32,
    /// Event streams that are open at the same time. Further ones are refused with status 429.
    pub event_streams: NonZeroU32,
    /// Labs at the same time. A policy may allow fewer. Further ones are refused with status 403.
    pub labs: NonZeroU32,
    /// Kernels at the same time that the service runs, of all labs together. Further ones are refused with status 403.
    pub kernels: NonZeroU32,
    /// Dask pools at the same time, of all labs together. Further ones are refused with status 403.
    pub dask_pools: NonZeroU32,
    /// Workers of Dask pools at the same time, of all pools together. A pool that would have more gets as many as are
    /// left; one that needs more from the beginning is refused with status 403.
    pub dask_workers: NonZeroU32,
}

impl Default for PerUserLimits {
    fn default() -> Self {
        let limit = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        Self {
            requests_per_second: limit(50),
            requests_at_once: limit(20),
            spawns_per_minute: limit(20),
            kernel_starts_per_minute: limit(60),
            event_streams: limit(20),
            labs: limit(20),
            kernels: limit(20),
            dask_pools: limit(5),
            dask_workers: limit(32),
        }
    }
}
