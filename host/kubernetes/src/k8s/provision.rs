//! Makes and removes the objects of a target: a namespace, and an account that may work in it.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::Instant;
use wasmspawner_core::custom_resource::environment::{
    Account, Credentials, ProvisionedObjects, TARGET_LABEL,
};

use super::connect::ApiUrl;
use super::quota_count::QuotaCount;
use super::retry::{RetryPolicy, retrying};
use super::{Connection, KubernetesError, StatusReason};

/// The time limit of a request with its retries. A failed operation is repeated later.
const TRY_FOR: Duration = Duration::from_secs(10);
/// The time that Kubernetes has to fill the Secret of an account. A failed operation is repeated later.
const TOKEN_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);

/// Makes and removes the objects of targets in one cluster.
#[derive(Clone)]
pub struct TargetObjects {
    client: Client,
    api_url: ApiUrl,
    retry_policy: RetryPolicy,
}

impl TargetObjects {
    /// Creates a `TargetObjects` for the cluster of `connection`. Each request may take `request_timeout`.
    pub fn new(connection: &Connection, request_timeout: Duration) -> Self {
        Self {
            client: connection.requests.clone(),
            api_url: connection.api_url.clone(),
            retry_policy: RetryPolicy::from_timeouts(request_timeout, TRY_FOR),
        }
    }

    /// Makes the namespace of the target with this uid, and everything in it. Existing objects stay if the namespace is
    /// the target's; otherwise nothing is touched. Returns the credentials with which the account reaches the
    /// namespace, if there is to be an account. The one-machine cluster has no accounts.
    pub async fn make(
        &self,
        objects: &ProvisionedObjects,
        uid: &str,
    ) -> Result<Option<Credentials>, KubernetesError> {
        self.make_namespace(&objects.namespace, uid).await?;
        let namespace = objects.namespace.metadata.name.as_deref().unwrap_or_default();
        if let Some(quota) = &objects.quota {
            self.create(namespace, quota).await?;
            QuotaCount::from_quota(quota, &self.client, &self.retry_policy).begun().await?;
        }
        match (&objects.account, &self.api_url.get()) {
            (Some(account), Some(api_url)) => self.make_account(namespace, account, api_url).await.map(Some),
            _ => Ok(None),
        }
    }

    async fn make_namespace(&self, namespace: &Namespace, uid: &str) -> Result<(), KubernetesError> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let name = namespace.metadata.name.as_deref().unwrap_or_default();
        let (action, params) = (format!("create Namespace {name}"), PostParams::default());
        match retrying(&self.retry_policy, &action, || namespaces.create(&params, namespace)).await {
            Err(KubernetesError::Refused { reason: StatusReason::AlreadyExists, .. }) => {}
            created => return created.map(drop),
        }
        let found = retrying(&self.retry_policy, &action, || namespaces.get_opt(name)).await?;
        match found {
            Some(found) if found.metadata.deletion_timestamp.is_some() => {
                Err(KubernetesError::StillBeingDeleted { action })
            }
            Some(found) if !is_of(&found, uid) => {
                Err(KubernetesError::Taken { kind: "Namespace", name: name.to_owned() })
            }
            Some(_) => Ok(()),
            None => Err(KubernetesError::StillBeingDeleted { action }),
        }
    }

    async fn make_account(
        &self,
        namespace: &str,
        account: &Account,
        api_url: &str,
    ) -> Result<Credentials, KubernetesError> {
        // A token needs its account, and a binding needs its role: Kubernetes checks whether the service has these
        // permissions.
        let token = async {
            self.create(namespace, &account.service_account).await?;
            self.create(namespace, &account.token).await
        };
        let permissions = async {
            self.create(namespace, &account.role).await?;
            self.create(namespace, &account.binding).await
        };
        tokio::try_join!(token, permissions)?;
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let name = account.token.metadata.name.as_deref().unwrap_or_default();
        let (action, deadline) =
            (format!("read the token of {name} in {namespace}"), Instant::now() + TOKEN_WITHIN);
        // The service may not read Secrets, but a patch that changes nothing returns the object.
        let (params, nothing) = (PatchParams::default(), Patch::Merge(json!({})));
        loop {
            let filled =
                retrying(&self.retry_policy, &action, || secrets.patch(name, &params, &nothing)).await?;
            let data = filled.data.unwrap_or_default();
            let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
            if let Some(token) = text("token") {
                let authority = data.get("ca.crt").map(|authority| authority.0.clone()).unwrap_or_default();
                return Ok(Credentials { api_url: api_url.to_owned(), token, authority });
            }
            if Instant::now() >= deadline {
                return Err(KubernetesError::NotFilled { name: format!("{namespace}/{name}") });
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Creates an object in a namespace that is known to be the target's, or leaves the existing one alone.
    async fn create<K>(&self, namespace: &str, object: &K) -> Result<(), KubernetesError>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + Serialize
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace);
        let (action, params) = (format!("create {} in {namespace}", K::kind(&())), PostParams::default());
        match retrying(&self.retry_policy, &action, || api.create(&params, object)).await {
            Err(KubernetesError::Refused { reason: StatusReason::AlreadyExists, .. }) => Ok(()),
            created => created.map(drop),
        }
    }

    /// Creates a Secret, or replaces the data of one that this service has created for the same target.
    pub async fn put_secret(&self, namespace: &str, secret: &Secret) -> Result<(), KubernetesError> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let name = secret.metadata.name.as_deref().unwrap_or_default();
        let action = format!("create Secret {name}");
        let create = PostParams::default();
        match retrying(&self.retry_policy, &action, || secrets.create(&create, secret)).await {
            Err(KubernetesError::Refused { reason: StatusReason::AlreadyExists, .. }) => {}
            created => return created.map(drop),
        }
        let label = format!("/metadata/labels/{}", TARGET_LABEL.replace('/', "~1"));
        let target = secret.metadata.labels.as_ref().and_then(|labels| labels.get(TARGET_LABEL));
        let patch = serde_json::from_value(json!([
            { "op": "test", "path": label, "value": target },
            { "op": "replace", "path": "/data", "value": secret.data },
        ]));
        let patch = Patch::<serde_json::Value>::Json(
            patch.map_err(|error| KubernetesError::Malformed(Box::new(error)))?,
        );
        let params = PatchParams::default();
        match retrying(&self.retry_policy, &action, || secrets.patch(name, &params, &patch)).await {
            Err(KubernetesError::Refused { reason: StatusReason::Invalid, .. }) => {
                Err(KubernetesError::Taken { kind: "Secret", name: name.to_owned() })
            }
            replaced => replaced.map(drop),
        }
    }

    /// Deletes the Secrets of a target in `namespace`.
    pub async fn delete_secrets(&self, namespace: &str, uid: &str) -> Result<(), KubernetesError> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let selected = ListParams::default().labels(&format!("{TARGET_LABEL}={uid}"));
        let (action, params) =
            (format!("delete the Secrets of a target in {namespace}"), DeleteParams::background());
        let deleted = || secrets.delete_collection(&params, &selected);
        retrying(&self.retry_policy, &action, deleted).await.map(drop)
    }

    /// Deletes the namespace of the target with this uid. Returns true if it is gone or another namespace has its name.
    pub async fn delete_namespace(&self, name: &str, uid: &str) -> Result<bool, KubernetesError> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let action = format!("delete Namespace {name}");
        let found = retrying(&self.retry_policy, &action, || namespaces.get_opt(name)).await?;
        let Some(found) = found.filter(|found| is_of(found, uid)) else { return Ok(true) };
        if found.metadata.deletion_timestamp.is_some() {
            return Ok(false);
        }
        let preconditions = Some(Preconditions { uid: found.metadata.uid, resource_version: None });
        let params = DeleteParams { preconditions, ..DeleteParams::background() };
        match retrying(&self.retry_policy, &action, || namespaces.delete(name, &params)).await {
            Err(KubernetesError::Refused {
                reason: StatusReason::NotFound | StatusReason::Conflict, ..
            }) => Ok(false),
            deleted => deleted.map(|_| false),
        }
    }
}

/// True if the namespace was made for the target with this uid.
fn is_of(namespace: &Namespace, uid: &str) -> bool {
    let label = namespace.metadata.labels.as_ref().and_then(|labels| labels.get(TARGET_LABEL));
    !uid.is_empty() && label.is_some_and(|label| label == uid)
}
