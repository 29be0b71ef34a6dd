//! The environment of a container: `env`, `envFrom`, `valueFrom` and `$(VAR)`.

mod expand;
mod field;
mod references;
mod resolve;

pub(crate) use expand::expand;
pub(crate) use field::{PodFacts, pod_field, resource_field};
pub(crate) use references::{Needs, References};
pub(crate) use resolve::{ConfigError, resolve};
