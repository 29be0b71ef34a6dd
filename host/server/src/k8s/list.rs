//! Lists, page by page.

use kube::Resource;
use kube::api::{Api, ListParams};
use serde::de::DeserializeOwned;

use super::KubernetesError;
use super::retry::{RetryPolicy, retrying};

const PAGE: u32 = 500;

/// Every object of a kind that `selector` selects. Each page is asked for again when it fails, and a list that the API
/// server cannot continue begins anew.
pub(crate) async fn list<K>(api: &Api<K>, selector: &str, action: &str) -> Result<Vec<K>, KubernetesError>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    list_some(api, selector, action, Some).await
}

/// The same of what `keep` makes of each object, page by page: where it is much smaller, a list of ten thousand objects
/// never stands in memory.
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
            Err(KubernetesError::Refused { reason, .. })
                if reason == "Expired" && params.continue_token.is_some() =>
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
