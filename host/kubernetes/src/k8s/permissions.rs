//! Asks a cluster what the service may do in a namespace.

use std::time::Duration;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SelfSubjectRulesReview,
    SelfSubjectRulesReviewSpec,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, PostParams};
use wasmspawner_core::custom_resource::environment::missing_permissions;
use wasmspawner_core::names::NamespaceName;

use super::retry::{RetryPolicy, retrying};
use super::{KubernetesError, StatusReason};

/// The time limit of a request with its retries. A failed check is repeated later.
const TRY_FOR: Duration = Duration::from_secs(10);

/// The permissions of the service in the namespaces of one cluster.
#[derive(Clone)]
pub struct Permissions {
    client: Client,
    retry_policy: RetryPolicy,
}

impl Permissions {
    /// Creates a `Permissions` for the cluster of `client`. Each request may take `request_timeout`.
    pub fn new(client: Client, request_timeout: Duration) -> Self {
        Self { client, retry_policy: RetryPolicy::from_timeouts(request_timeout, TRY_FOR) }
    }

    /// Returns false if the namespace does not exist. Credentials for one namespace may not be permitted to read it; then
    /// it is taken to exist.
    pub async fn namespace_exists(&self, namespace: &NamespaceName) -> Result<bool, KubernetesError> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let action = format!("read Namespace {namespace}");
        let read = || namespaces.get_metadata_opt(namespace.as_str());
        match retrying(&self.retry_policy, &action, read).await {
            Err(KubernetesError::Refused { reason: StatusReason::Forbidden, .. }) => Ok(true),
            found => found.map(|found| found.is_some()),
        }
    }

    /// Returns the permissions that every lab needs in a namespace and that the service does not have there, such as
    /// `create pods`. A cluster that does not answer this, such as the one-machine cluster, or one that lets nobody ask, is
    /// taken to permit everything.
    pub async fn missing(&self, namespace: &NamespaceName) -> Result<Vec<String>, KubernetesError> {
        let reviews: Api<SelfSubjectRulesReview> = Api::all(self.client.clone());
        let review = SelfSubjectRulesReview {
            spec: SelfSubjectRulesReviewSpec { namespace: Some(namespace.to_string()) },
            ..SelfSubjectRulesReview::default()
        };
        let (action, params) = (format!("list the permissions in {namespace}"), PostParams::default());
        let create = || reviews.create(&params, &review);
        let granted = match retrying(&self.retry_policy, &action, create).await {
            Err(error) if is_withheld(&error) => return Ok(Vec::new()),
            answer => answer?.status.unwrap_or_default(),
        };
        let mut missing = Vec::new();
        for permission in missing_permissions(&granted.resource_rules) {
            // Not every authorizer can list its rules, but each can answer a single question.
            if !granted.incomplete || !self.has(namespace, &permission).await? {
                let (_, resource, verb) = permission;
                missing.push(format!("{verb} {resource}"));
            }
        }
        Ok(missing)
    }

    async fn has(
        &self,
        namespace: &NamespaceName,
        (group, resource, verb): &(String, String, String),
    ) -> Result<bool, KubernetesError> {
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let attributes = ResourceAttributes {
            namespace: Some(namespace.to_string()),
            group: Some(group.clone()),
            resource: Some(resource.clone()),
            verb: Some(verb.clone()),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        };
        let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
        let (action, params) =
            (format!("ask for the permission to {verb} {resource} in {namespace}"), PostParams::default());
        match retrying(&self.retry_policy, &action, || reviews.create(&params, &review)).await {
            Err(error) if is_withheld(&error) => Ok(true),
            answer => Ok(answer?.status.is_some_and(|status| status.allowed)),
        }
    }
}

/// Returns true if the API server answered, and does not say what it permits.
fn is_withheld(error: &KubernetesError) -> bool {
    matches!(error, KubernetesError::Refused { reason, .. } if *reason != StatusReason::Unauthorized)
}
