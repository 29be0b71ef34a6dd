//! What decides about labs.

use wasmspawner_core::config::Config;
use wasmspawner_core::lab::LabKey;
use wasmspawner_core::names::{KeptNames, LabNames, NameError};

use crate::wasm::Policies;

/// What decides about labs: the configuration and the policies, without the cluster.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The live chain of policies.
    pub policies: &'a Policies,
}

impl Rules<'_> {
    /// The names of a lab that keeps these.
    pub(super) fn names(self, kept: &KeptNames, key: &LabKey) -> Result<LabNames, NameError> {
        self.config.names.resolve_keeping(kept, &key.user, &key.server, None)
    }
}
