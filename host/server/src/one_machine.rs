//! The one-machine cluster in this process: its API server, its kubelet and the kubeconfig that leads there.
//!
//! It is the Cargo feature `embedded`. Without it [`OneMachine`] cannot be opened, and says how to go on.

#[cfg(not(feature = "embedded"))]
mod absent;
#[cfg(feature = "embedded")]
mod cluster;

#[cfg(not(feature = "embedded"))]
pub(crate) use absent::OneMachine;
#[cfg(feature = "embedded")]
pub(crate) use cluster::OneMachine;

use uuid::Uuid;

/// 244 unpredictable bits, for a credential.
pub(crate) fn random_token() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}
