//! Objects that count for the quota of a lab's namespace.

use futures::StreamExt;
use futures::stream;
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::api::{Api, ListParams};
use wasmspawner_tests::kubernetes::SKIPPED;
use wasmspawner_tests::service::Service;

use crate::labs::{service, stop};
use crate::site::{CLUSTER_WIDE, Site};

const AT_ONCE: usize = 8;

/// The API server admits pods without counting them until it knows their namespace's quota.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_quota_counts_the_lab_for_which_it_is_made() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.install_definition().await;
    let mut service = service(&site, "delete", &format!("{}-delete-{{user_server}}", site.name()));
    service.run().await.unwrap();
    let users: Vec<String> = (0..20).map(|number| format!("user{number}")).collect();
    stream::iter(&users).for_each_concurrent(AT_ONCE, |user| start(&service, user)).await;
    let mut not_counted = Vec::new();
    for user in &users {
        let namespace = format!("{}-delete-{user}", site.name());
        let quotas: Api<ResourceQuota> = Api::namespaced(site.cluster.client.clone(), &namespace);
        let quota = quotas.list(&ListParams::default()).await.unwrap().items.remove(0);
        let used = quota.status.unwrap_or_default().used.unwrap_or_default();
        if used.get("limits.cpu").is_none_or(|cpus| cpus.0 == "0") {
            not_counted.push(user);
        }
    }
    assert!(not_counted.is_empty(), "the labs of {not_counted:?}");
    stream::iter(&users).for_each_concurrent(AT_ONCE, |user| stop(&service, user)).await;
    site.leave().await;
}

async fn start(service: &Service, user: &str) {
    let events = service.user(user).unwrap().spawn_to_end(user).await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
}
