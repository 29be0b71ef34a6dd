use wasmspawner_core::config::{Config, LabRoutes};
use wasmspawner_core::custom_resource::environment::ClusterRef;

/// The routes by which the Hub reaches labs in this cluster; `None` if it reaches them at the addresses of their pods.
pub(crate) fn lab_routes<'a>(config: &'a Config, cluster: Option<&ClusterRef>) -> Option<&'a LabRoutes> {
    config.environments.as_ref()?.clusters.get(&cluster?.secret)
}
