//! Lists objects page by page.

use kube::Resource;
use kube::api::{Api, ListParams};
use serde::de::DeserializeOwned;

use super::retry::{RetryPolicy, retrying};
use super::{KubernetesError, StatusReason};

const PAGE: u32 = 500;

/// All objects of a kind that `selector` selects. A page that fails is requested again. When the API server cannot
/// continue a list because it has expired, the list begins anew.
pub(crate) async fn list<K>(api: &Api<K>, selector: &str, action: &str) -> Result<Vec<K>, KubernetesError>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    list_some(api, selector, action, Some).await
}

/// Like `list`, but keeps only what `keep` returns for each object. When that is much smaller than the object, a list
/// of ten thousand objects needs little memory.
pub(crate) async fn list_some<K, T>(
    api: &Api<K>,
    selector: &str,
    action: &str,
    keep: impl Fn(K) -> Option<T>,
) -> Result<Vec<T>, KubernetesError>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let retry_policy = RetryPolicy::for_a_minute(std::time::Duration::from_secs(30));
    let mut items = Vec::new();
    let mut params = ListParams::default().labels(selector).limit(PAGE);
    loop {
        let page = match retrying(&retry_policy, action, || api.list(&params)).await {
            Err(KubernetesError::Refused { reason: StatusReason::Expired, .. })
                if params.continue_token.is_some() =>
            {
                items.clear();
                params.continue_token = None;
                continue;
            }
            page => page?,
        };
        items.extend(page.items.into_iter().filter_map(&keep));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(items),
        }
    }
}
