//! A one-machine cluster: the part of Kubernetes that starting labs needs, in one process.
//!
//! The crate is for trying a service, for developing against it, for tests, and for a few trusted users on one machine.
//! It is not a full Kubernetes; the documentation of each part names the omissions.
//!
//! - [`apiserver`] keeps objects and speaks the Kubernetes REST API, to [`kube::Client`] in process and to `kubectl`
//!   over loopback.
//! - [`kubelet`] takes pods through their life against any Kubernetes API.

pub mod apiserver;
pub mod kubelet;
mod quantity;
