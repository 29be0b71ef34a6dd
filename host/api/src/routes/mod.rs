//! The handlers of the routes: one file for each route, or for routes that belong together.

pub(crate) mod blueprints;
pub(crate) mod config;
pub(crate) mod dask_pools;
pub(crate) mod environments;
pub(crate) mod events;
pub(crate) mod forgotten;
pub(crate) mod history;
pub(crate) mod images;
pub(crate) mod jobs;
pub(crate) mod kernels;
pub(crate) mod lab;
pub(crate) mod lab_lookup;
pub(crate) mod lab_status;
pub(crate) mod labs;
pub(crate) mod logs;
pub(crate) mod orphans;
pub(crate) mod pod_program;
pub(crate) mod policies;
pub(crate) mod prepulls;
pub(crate) mod probes;
pub(crate) mod retained;
pub(crate) mod spawn;
pub(crate) mod spawn_form;
pub(crate) mod volumes;
