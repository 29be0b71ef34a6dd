//! The permission to read logs.

use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::kubernetes::SKIPPED;

use crate::labs::{service, start, stop};
use crate::site::{CLUSTER_WIDE, Site, until};

const LOGS: &str = include_str!("../../../deploy/permissions/logs.yaml");

#[tokio::test(flavor = "multi_thread")]
async fn without_the_permission_to_read_logs_the_answer_names_it() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.install_definition().await;
    site.install_policy().await;
    let mut service = service(&site, "delete", &format!("{}-delete-{{user_server}}", site.name()));
    service.run().await.unwrap();
    let ada = service.user("ada").unwrap();
    start(&ada, "ada").await;
    let logs = async || ada.get(&format!("{PREFIX}/labs/ada/logs")).await.unwrap();
    let answer = logs().await;
    assert_eq!(answer.problem().unwrap(), "409 logs_not_permitted", "{answer:?}");
    assert!(answer.body.contains("pods/log") && answer.body.contains("rbac.logs"), "{}", answer.body);
    site.apply(LOGS).await;
    // The simulated node has no kubelet that the API server could ask, so it is asked in vain.
    until(async || logs().await.problem().unwrap() != "409 logs_not_permitted").await;
    assert_eq!(logs().await.problem().unwrap(), "503 cluster_unavailable");
    stop(&service, "ada").await;
    site.leave().await;
}
