//! The decision about a lab, from a request to the objects: the request, the permission, the answers of the policies,
//! and the result.

pub(crate) mod approve;
pub(crate) mod blueprints;
pub(crate) mod certificate;
pub(crate) mod child_limits;
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
