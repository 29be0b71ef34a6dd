//! A one-machine cluster: the part of Kubernetes that starting labs needs, in one process.
//!
//! It is for trying a service, for developing against it, for tests, and for a few trusted users on one machine.
//! It is not a Kubernetes; what it leaves out is said where it is left out.
//!
//! - [`apiserver`] keeps objects and speaks the Kubernetes REST API, to [`kube::Client`] in process and to `kubectl`
//!   over loopback.
//! - [`kubelet`] takes pods through their life against any Kubernetes API.

pub mod apiserver;
pub mod kubelet;
mod quantity;
