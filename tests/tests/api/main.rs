//! The REST API from outside: the service as a process, with real policies, on the one-machine cluster with simulated
//! pods. There is one module for each route, and one for each topic that concerns all routes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "skipped tests are printed")]

mod administrators;
mod auth_headers;
mod auth_jupyterhub;
mod auth_oidc;
mod bad_input;
mod blueprint_providers;
mod blueprints;
mod callers;
mod config_reload;
mod dask_groups;
mod dask_pool_rules;
mod dask_pools;
mod debug_bundle;
mod environments;
mod environments_admin;
mod environments_elsewhere;
mod events;
mod fair_use;
mod faults;
mod forgotten;
mod history;
mod jobs;
mod kept_namespace;
mod kernel_rules;
mod kernels;
mod lab;
mod lab_server;
mod lab_status;
mod labs;
mod logs;
mod monitoring;
mod nublado;
mod openapi;
mod ownership;
mod policies;
mod prepulls;
mod probes;
mod provisioning;
mod records;
mod restart;
mod retained;
mod running;
mod single_namespace;
mod spawn;
mod spawn_form;
mod start;
mod tls;
mod traces;
mod unreadable_records;
mod user_strings;
mod volumes;

/// The service under test.
const BINARY: &str = env!("CARGO_BIN_EXE_wasmspawner-under-test");
