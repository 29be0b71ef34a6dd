//! The configuration and the policies, which decide about labs.

use std::sync::Arc;

use wasmspawner_core::config::Config;
use wasmspawner_core::custom_resource::blueprint::ExtendedLibrary;
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::names::{KeptNames, LabNames, NameError};

use crate::blueprint_providers::BlueprintProviders;
use wasmspawner_policies::Policies;

/// The configuration and the policies, which decide about labs. They contain nothing of the cluster.
#[derive(Clone)]
pub struct SiteRules<'a> {
    /// The validated configuration.
    pub config: Arc<Config>,
    /// The loaded chain of policies.
    pub policies: &'a Policies,
    /// The site's blueprints.
    pub blueprints: Arc<ExtendedLibrary>,
    /// Reads blueprints that the site has not written.
    pub providers: &'a BlueprintProviders,
}

impl SiteRules<'_> {
    /// The names of a lab: those in `kept`, and otherwise those that the templates give. Fails if no lab may be in the
    /// namespace.
    pub(crate) fn names(&self, kept: &KeptNames, key: &LabKey) -> Result<LabNames, NameError> {
        let names = self.config.names.resolve_keeping(kept, &key.user, &key.server, None)?;
        self.config.lab_namespaces.check(&names.namespace)?;
        Ok(names)
    }
}
