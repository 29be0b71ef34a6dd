//! Makes sure that the cluster counts a lab's pod for a quota that is made together with the pod.
//!
//! The API server does not know a new quota at once, and meanwhile admits pods without counting them. If the first
//! count of the quota also comes before such a pod, nothing counts the pod for minutes, and its user can have more than
//! the quota allows.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ResourceQuota, ResourceQuotaStatus};
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::KubernetesError;
use super::retry::{RetryPolicy, retrying};

/// The first pause between two reads of the status. Each pause is twice as long as the one before, up to
/// `MAX_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// The time limit of a count. A cluster that counts nothing does not keep users from their labs.
const PATIENCE: Duration = Duration::from_secs(10);
/// Values of `count/pods` that limit nothing. A change of limits makes the cluster count again.
const NO_LIMITS: [Option<&str>; 4] = [Some("1000000"), None, Some("1000000"), None];

/// The quota of a lab's namespace.
pub(super) struct QuotaCount<'a> {
    quotas: Api<ResourceQuota>,
    name: &'a str,
    retry_policy: &'a RetryPolicy,
}

impl<'a> QuotaCount<'a> {
    pub(super) fn from_quota(
        quota: &'a ResourceQuota,
        client: &Client,
        retry_policy: &'a RetryPolicy,
    ) -> Self {
        let namespace = quota.metadata.namespace.as_deref().unwrap_or_default();
        let name = quota.metadata.name.as_deref().unwrap_or_default();
        Self { quotas: Api::namespaced(client.clone(), namespace), name, retry_policy }
    }

    /// Waits until the cluster has counted for the first time.
    pub(super) async fn begun(&self) -> Result<(), KubernetesError> {
        self.status_after(json!({})).await.map(drop)
    }

    /// Makes sure that the quota counts a pod that has been created since. A quota that counts other pods already is
    /// assumed to count this one.
    pub(super) async fn includes_pod(&self) -> Result<(), KubernetesError> {
        let mut status = self.status_after(json!({})).await?;
        for limit in NO_LIMITS {
            if status.is_none_or(|status| counts_pods(&status)) {
                return Ok(());
            }
            tracing::debug!(quota = self.name, "the cluster has not counted the lab's pod, and counts anew");
            status = self.status_after(json!({ "spec": { "hard": { "count/pods": limit } } })).await?;
        }
        Ok(())
    }

    /// Applies this change and returns the status after the next count. Returns `None` if the cluster does not count.
    async fn status_after(&self, change: Value) -> Result<Option<ResourceQuotaStatus>, KubernetesError> {
        let action = format!("count for ResourceQuota {}", self.name);
        let params = PatchParams::default();
        let patched = async |change: &Patch<Value>| {
            retrying(self.retry_policy, &action, || self.quotas.patch(self.name, &params, change)).await
        };
        let mut quota = patched(&Patch::Merge(change)).await?;
        // The service may not read quotas, but a patch that changes nothing returns the object.
        let nothing = Patch::Merge(json!({}));
        let deadline = Instant::now() + PATIENCE;
        let mut pause = FIRST_PAUSE;
        while !is_counted(&quota) {
            if Instant::now() >= deadline {
                tracing::warn!(quota = self.name, "the cluster does not count what this quota limits");
                return Ok(None);
            }
            self.retry_policy.pause(pause).await?;
            pause = (pause * 2).min(MAX_PAUSE);
            quota = patched(&nothing).await?;
        }
        Ok(quota.status)
    }
}

/// True if the cluster has counted since the limits changed.
fn is_counted(quota: &ResourceQuota) -> bool {
    let limits = quota.spec.as_ref().and_then(|spec| spec.hard.as_ref());
    let counted = quota.status.as_ref().and_then(|status| status.hard.as_ref());
    limits.is_none_or(|limits| counted.is_some_and(|counted| counted.keys().eq(limits.keys())))
}

/// True if some pod is counted, or if the quota does not limit pods.
fn counts_pods(status: &ResourceQuotaStatus) -> bool {
    let is_of_pods = |resource: &str| {
        let amount = resource.strip_prefix("requests.").is_some_and(|amount| amount != "storage");
        amount || resource.starts_with("limits.") || ["pods", "count/pods"].contains(&resource)
    };
    let used = status.used.iter().flatten();
    let mut of_pods = used.filter(|(resource, _)| is_of_pods(resource)).peekable();
    of_pods.peek().is_none() || of_pods.any(|(_, used)| used.0 != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(text: &str) -> ResourceQuota {
        serde_saphyr::from_str(text).unwrap()
    }

    #[test]
    fn limits_that_have_changed_are_not_counted_yet() {
        for (text, counted) in [
            ("spec: {hard: {pods: '5'}}", false),
            ("{spec: {hard: {pods: '5'}}, status: {hard: {pods: '5'}}}", true),
            ("{spec: {hard: {pods: '5', count/pods: '9'}}, status: {hard: {pods: '5'}}}", false),
            ("{spec: {hard: {pods: '5'}}, status: {hard: {pods: '5', count/pods: '9'}}}", false),
        ] {
            assert_eq!(is_counted(&quota(text)), counted, "{text}");
        }
    }

    #[test]
    fn a_quota_counts_pods_if_one_is_in_what_is_used() {
        for (used, counts) in [
            ("{limits.cpu: '0', requests.storage: 10Gi}", false),
            ("{limits.cpu: '4', limits.memory: '0'}", true),
            ("{requests.nvidia.com/gpu: '0'}", false),
            ("{pods: '0', count/pods: '1'}", true),
            // This quota limits nothing that a pod has.
            ("{requests.storage: '0'}", true),
        ] {
            let status = quota(&format!("status: {{used: {used}}}")).status.unwrap();
            assert_eq!(counts_pods(&status), counts, "{used}");
        }
    }
}
