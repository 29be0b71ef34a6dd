//! Lists objects page by page.

use kube::api::{Api, ListParams};
use kube::core::{ObjectList, Request};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;

use super::retry::{RetryPolicy, retrying};
use super::{KubernetesError, StatusReason};
use crate::watches::Readable;

/// The number of objects on a page. Each object may have a megabyte and more.
const PAGE: u32 = 100;

/// Lists all objects of a kind that `selector` selects. Objects that cannot be read are left out. A page that fails is
/// requested again. If the API server cannot continue a list because it has expired, the list starts over.
pub async fn list<K>(api: &Api<K>, selector: &str, action: &str) -> Result<Vec<K>, KubernetesError>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    list_some(api, selector, action, Some).await
}

/// Like `list`, but keeps only the value that `keep` returns for each object. If this value is much smaller than the
/// object, a list of ten thousand objects needs little memory.
pub async fn list_some<K, T>(
    api: &Api<K>,
    selector: &str,
    action: &str,
    keep: impl Fn(K) -> Option<T>,
) -> Result<Vec<T>, KubernetesError>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    list_pages(api, selector, PAGE, action, keep).await
}

/// Like `list_some`, with pages of `size` objects, for objects that may be large.
pub(super) async fn list_pages<K, T>(
    api: &Api<K>,
    selector: &str,
    size: u32,
    action: &str,
    keep: impl Fn(K) -> Option<T>,
) -> Result<Vec<T>, KubernetesError>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let retry_policy = RetryPolicy::for_a_minute(std::time::Duration::from_secs(30));
    let client: Client = api.clone().into_client();
    let mut items = Vec::new();
    let mut params = ListParams::default().labels(selector).limit(size);
    loop {
        let page = match retrying(&retry_policy, action, || page(&client, api, &params)).await {
            Err(KubernetesError::Refused { reason: StatusReason::Expired, .. })
                if params.continue_token.is_some() =>
            {
                items.clear();
                params.continue_token = None;
                continue;
            }
            page => page?,
        };
        items.extend(page.items.into_iter().filter_map(Readable::whole).filter_map(&keep));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(items),
        }
    }
}

async fn page<K>(client: &Client, api: &Api<K>, params: &ListParams) -> kube::Result<ObjectList<Readable<K>>>
where
    K: Resource + Clone + DeserializeOwned,
{
    let request = Request::new(api.resource_url());
    let request = if K::metadata_api() { request.list_metadata(params) } else { request.list(params) };
    client.request(request.map_err(kube::Error::BuildRequest)?).await
}
