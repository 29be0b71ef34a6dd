//! Events about pods and claims.

mod journal;
mod object;

pub(crate) use journal::{Journal, record};
pub(crate) use object::{Happening, Reporter, container_field, reference};
