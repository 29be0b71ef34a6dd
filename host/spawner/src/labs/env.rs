//! The environment variables of labs that are not secret. The API shows them. Records do not hold them, so they are
//! read from the cluster after a restart.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use wasmspawner_core::manifest::environment_selector;
use wasmspawner_core::names::labels::SPAWN_LABEL;
use wasmspawner_core::names::spawn_key::SpawnKey;
use wasmspawner_core::record::Place;

use super::Labs;
use super::message::Message;
use wasmspawner_kubernetes::k8s::{Causes, KubernetesError, list_some};

/// The environment variables of one lab.
pub(crate) type Env = BTreeMap<String, String>;

/// The environment variables of labs, by the namespace of the lab and the uid of its record.
pub(crate) type EnvOfLabs = BTreeMap<(String, String), Env>;

/// The pause before another attempt to read the environment variables of one lab.
const PAUSE: Duration = Duration::from_secs(5);

impl Labs {
    /// Lists the environment variables of all labs in the service's own cluster.
    pub(crate) async fn list_env(&self) -> Result<EnvOfLabs, KubernetesError> {
        let context = self.context();
        self.env_in(&context.reach().all(context.own_cluster().connection.requests.clone())).await
    }

    /// Reads the environment variables of one lab as soon as its cluster is known, and gives them to its driver. The
    /// caller does not wait for that, because another cluster may be away for long.
    pub(crate) fn read_env_later(&self, key: SpawnKey, place: Place, spawn: String) {
        let labs = self.clone();
        tokio::spawn(async move {
            let cluster = labs.context().cluster(&place);
            cluster.store.first_sync().await;
            let namespace = place.namespace.as_str();
            let maps = Api::namespaced(cluster.connection.requests.clone(), namespace);
            while labs.has_driver(&key) {
                match labs.env_in(&maps).await {
                    Ok(mut found) => {
                        let env = found.remove(&(namespace.to_owned(), spawn.clone())).unwrap_or_default();
                        return labs.tell(&key, Message::Env { spawn, env });
                    }
                    Err(error) => {
                        tracing::warn!(error = %Causes(&error), name = %key.object_name(), "the environment variables of a lab cannot be read; it is tried again");
                    }
                }
                tokio::time::sleep(PAUSE).await;
            }
        });
    }

    async fn env_in(&self, maps: &Api<ConfigMap>) -> Result<EnvOfLabs, KubernetesError> {
        let selector = environment_selector(&self.context().config.current().kubernetes.instance());
        let by_spawn = |map: ConfigMap| {
            let spawn = map.metadata.labels.as_ref()?.get(SPAWN_LABEL)?.clone();
            Some(((map.metadata.namespace?, spawn), map.data.unwrap_or_default()))
        };
        let found = list_some(maps, &selector, "list the environments of labs", by_spawn).await?;
        Ok(found.into_iter().collect())
    }
}
