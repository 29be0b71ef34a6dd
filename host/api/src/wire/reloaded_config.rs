//! The answer about the changes after a reload of the configuration.

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::config::ConfigChanges;

use super::Policy;
use wasmspawner_spawner::LoadedPolicy;

/// What has changed when the configuration was read again.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReloadedConfig)]
pub(crate) struct ReloadedConfig {
    /// Keys whose new values are in use from now on.
    applied: Vec<String>,
    /// Keys whose new values are used after a restart of the service.
    need_restart: Vec<String>,
    /// The policies as they are now.
    policies: Vec<Policy>,
}

impl ReloadedConfig {
    pub(crate) fn new(changes: ConfigChanges, policies: Vec<LoadedPolicy>) -> Self {
        Self {
            applied: changes.applied,
            need_restart: changes.need_restart,
            policies: policies.into_iter().map(Policy::from).collect(),
        }
    }
}
