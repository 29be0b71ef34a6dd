//! Small facts about users that outlive their labs.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use super::KubernetesError;

/// A set of facts, one a key, kept in `ConfigMap`s of the service's own namespace. Sixteen of them share the keys, so
/// that a site with a hundred thousand users stays below the size limit of one object.
#[derive(Clone)]
pub struct Records {
    config_maps: Api<ConfigMap>,
    name: &'static str,
}

impl Records {
    /// The facts called `name` in `namespace`.
    pub fn new(client: Client, namespace: &str, name: &'static str) -> Self {
        Self { config_maps: Api::namespaced(client, namespace), name }
    }

    /// All facts of the shard that has `key`; empty when nothing was recorded there.
    pub async fn get(&self, key: &str) -> Result<Option<String>, KubernetesError> {
        let shard = self.shard(key);
        match self.config_maps.get_opt(&shard).await {
            Ok(found) => {
                Ok(found.and_then(|shard| shard.data).and_then(|data: BTreeMap<_, _>| data.get(key).cloned()))
            }
            Err(error) => Err(KubernetesError::from_client(&format!("read ConfigMap {shard}"), error)),
        }
    }

    /// Records `value` under `key`, a valid ConfigMap key.
    pub async fn set(&self, key: &str, value: &str) -> Result<(), KubernetesError> {
        let shard = self.shard(key);
        let patch = json!({ "data": { key: value } });
        let merged = self.config_maps.patch(&shard, &PatchParams::default(), &Patch::Merge(&patch)).await;
        match merged {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => self.create(&shard, key, value).await,
            Err(error) => Err(KubernetesError::from_client(&format!("record in ConfigMap {shard}"), error)),
        }
    }

    async fn create(&self, shard: &str, key: &str, value: &str) -> Result<(), KubernetesError> {
        let mut config_map = ConfigMap::default();
        config_map.metadata.name = Some(shard.to_owned());
        config_map.data = Some(BTreeMap::from([(key.to_owned(), value.to_owned())]));
        let created = self.config_maps.create(&kube::api::PostParams::default(), &config_map).await;
        match created {
            Ok(_) => Ok(()),
            // Somebody else was first: theirs is extended.
            Err(kube::Error::Api(status)) if status.code == 409 => Box::pin(self.set(key, value)).await,
            Err(error) => Err(KubernetesError::from_client(&format!("create ConfigMap {shard}"), error)),
        }
    }

    fn shard(&self, key: &str) -> String {
        let sum = key.bytes().fold(0_u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte));
        format!("{}-{:x}", self.name, sum % 16)
    }
}
