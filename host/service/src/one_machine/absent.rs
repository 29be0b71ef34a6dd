//! The replacement for the one-machine cluster in a build without the feature `embedded`: an error.

use std::future::{Ready, ready};

use tokio_util::sync::CancellationToken;
use wasmspawner_core::config::{Config, EmbeddedConfig};

/// The one-machine cluster that this build does not have. The type has no values.
pub(crate) enum OneMachine {}

impl OneMachine {
    /// Always fails: the section `embedded` needs the feature.
    pub(crate) fn open(_: &EmbeddedConfig, _: &Config) -> Ready<anyhow::Result<Self>> {
        ready(Err(anyhow::anyhow!(
            "embedded: this program was built without the one-machine cluster; remove the section `embedded` and \
             name a Kubernetes in the section `kubernetes`, or build with the Cargo feature `embedded`"
        )))
    }

    pub(crate) fn client(&self) -> kube::Client {
        match *self {}
    }

    pub(crate) fn run(self, _: CancellationToken) -> Ready<()> {
        match self {}
    }
}
