//! Pods through their lives, against the API server in process. Nothing here sleeps: tests wait for conditions.

mod cluster;
mod faults;
mod process;
mod scheduling;
