//! Small values that outlive labs, stored in `ConfigMap`s.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wasmspawner_core::names::LabelValue;

use super::list::list;
use super::retry::{RetryPolicy, retrying};
use super::{KubernetesError, StatusReason};
use crate::installation::object_name;

/// The label of the `ConfigMap`s that store values. Its value is the name of the set.
const RECORDS_LABEL: &str = "wasmspawner.io/records";

/// A set of values by key, stored in `ConfigMap`s in the service's own namespace. The keys are spread over 64 of them,
/// so that a site with a hundred thousand users stays below the size limit of one object.
#[derive(Clone)]
pub struct ConfigMapRecords {
    config_maps: Api<ConfigMap>,
    name: &'static str,
    /// The prefix of the names of its `ConfigMap`s. It differs between installations in one namespace.
    prefix: String,
    retry_policy: RetryPolicy,
}

impl ConfigMapRecords {
    /// The set `name` of an installation in `namespace`. One request may take `request_timeout`; it is retried for a minute.
    pub fn new(
        client: Client,
        namespace: &str,
        instance: &LabelValue,
        name: &'static str,
        request_timeout: Duration,
    ) -> Self {
        let retry_policy = RetryPolicy::for_a_minute(request_timeout);
        let prefix = prefix(name, namespace, instance);
        Self { config_maps: Api::namespaced(client, namespace), name, prefix, retry_policy }
    }

    /// Reads all keys and values of the set.
    pub async fn all(&self) -> Result<BTreeMap<String, String>, KubernetesError> {
        let selector = format!("{RECORDS_LABEL}={}", self.name);
        let shards = list(&self.config_maps, &selector, &format!("list the records {}", self.name)).await?;
        let is_own = |name: &String| is_shard(&self.prefix, name);
        let own = shards.into_iter().filter(|shard| shard.metadata.name.as_ref().is_some_and(is_own));
        Ok(own.filter_map(|shard| shard.data).flatten().collect())
    }

    /// Stores `value` under `key`, which must be valid as a key of a ConfigMap.
    pub async fn set(&self, key: &str, value: &str) -> Result<(), KubernetesError> {
        match self.patch(key, &json!(value)).await {
            Err(KubernetesError::Refused { reason: StatusReason::NotFound, .. }) => {
                self.create(key, value).await
            }
            answer => answer,
        }
    }

    /// Removes `key` and its value.
    pub async fn remove(&self, key: &str) -> Result<(), KubernetesError> {
        match self.patch(key, &Value::Null).await {
            Err(KubernetesError::Refused { reason: StatusReason::NotFound, .. }) => Ok(()),
            answer => answer,
        }
    }

    async fn patch(&self, key: &str, value: &Value) -> Result<(), KubernetesError> {
        let shard = self.shard(key);
        let (params, patch) = (PatchParams::default(), Patch::Merge(json!({ "data": { key: value } })));
        let action = format!("record in ConfigMap {shard}");
        retrying(&self.retry_policy, &action, || self.config_maps.patch(&shard, &params, &patch))
            .await
            .map(drop)
    }

    async fn create(&self, key: &str, value: &str) -> Result<(), KubernetesError> {
        let mut shard = ConfigMap::default();
        shard.metadata.name = Some(self.shard(key));
        shard.metadata.labels = Some(BTreeMap::from([(RECORDS_LABEL.to_owned(), self.name.to_owned())]));
        shard.data = Some(BTreeMap::from([(key.to_owned(), value.to_owned())]));
        let (params, action) = (PostParams::default(), format!("create ConfigMap {}", self.shard(key)));
        match retrying(&self.retry_policy, &action, || self.config_maps.create(&params, &shard)).await {
            // Another request has created the `ConfigMap` first; the key is added to that one.
            Err(KubernetesError::Refused { reason: StatusReason::AlreadyExists, .. }) => {
                self.patch(key, &json!(value)).await
            }
            answer => answer.map(drop),
        }
    }

    fn shard(&self, key: &str) -> String {
        let sum = key.bytes().fold(0_u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte));
        format!("{}{:02x}", self.prefix, sum % 64)
    }
}

/// Returns the prefix of the names of an installation's `ConfigMap`s.
fn prefix(name: &str, namespace: &str, instance: &LabelValue) -> String {
    object_name(name, namespace, instance) + "-"
}

/// True for the name of a `ConfigMap` with this prefix. The names of another installation are longer or have another
/// prefix.
fn is_shard(prefix: &str, name: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|number| number.len() == 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_records_of_two_installations_are_apart() {
        let prefixes = ["wasmspawner", "one", "two"]
            .map(|name| prefix("volumes", "wasmspawner", &LabelValue::parse(name).unwrap()));
        for (at, of) in prefixes.iter().enumerate() {
            let own = prefixes.iter().map(|prefix| is_shard(of, &format!("{prefix}3f")));
            assert_eq!(own.collect::<Vec<_>>(), [at == 0, at == 1, at == 2]);
        }
    }
}
