//! The decision about a lab, from a request to its objects.
//!
//! `approve` is what the caller waits for: the options are parsed, the policies allow it, the user is within the limits.
//! The spawn is then recorded, and `evaluate` decides the rest: it reads facts from the cluster, names the lab, asks the
//! policies what the pod should have, merges their answers, and builds the objects. The kernels and pools of a lab are
//! decided in the same way. `preview` does both without a cluster.

pub(crate) mod approve;
pub(crate) mod blueprints;
pub(crate) mod certificate;
pub(crate) mod child_limits;
pub(crate) mod choices;
pub(crate) mod details;
pub(crate) mod evaluate;
pub(crate) mod from_cluster;
pub(crate) mod image_menu;
pub(crate) mod permission;
pub(crate) mod pod_note;
pub(crate) mod preview;
pub(crate) mod programs;
pub(crate) mod running_lab;
pub(crate) mod user_use;
pub(crate) mod workload_requests;
