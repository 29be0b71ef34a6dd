//! From a request and the answers of policies to the objects of a lab: golden files, the rules one by one, and
//! properties.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod administrators;
mod case;
mod dask_pools;
mod golden;
mod granted;
mod injection;
mod properties;
mod refusals;
mod rules;
mod same_storage;
mod unprivileged;
mod written_storage;
