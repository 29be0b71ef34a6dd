//! Many pods at once.

use std::collections::HashSet;

use futures::future::join_all;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::json;

use super::cluster::*;
use crate::kubelet::SimulatedOptions;

const PODS: usize = 200;

#[tokio::test(start_paused = true)]
async fn two_hundred_labs_start_and_end_together() {
    let cluster = Cluster::simulated(SimulatedOptions::default()).await;
    let names: Vec<_> = (0..PODS).map(|number| format!("nb-{number}")).collect();
    join_all(names.iter().map(|name| cluster.create::<Pod>(lab(name, &[], &json!({}))))).await;
    let pods = join_all(names.iter().map(|name| cluster.until_pod(name, "ready", is_ready))).await;
    let addresses: HashSet<_> = pods.iter().map(|pod| pod.status.as_ref().unwrap().pod_ip.clone()).collect();
    assert_eq!(addresses.len(), PODS);
    // One binding, at most two statuses, and the creation.
    let events: Api<Event> = Api::namespaced(cluster.client(), NAMESPACE);
    assert!(events.list(&ListParams::default()).await.unwrap().items.len() <= 4 * PODS);
    join_all(pods.iter().map(|pod| {
        let (pods, name) = (cluster.pods(), pod.name_any());
        async move { pods.delete(&name, &DeleteParams::default()).await.unwrap() }
    }))
    .await;
    join_all(names.iter().map(|name| cluster.until_gone(name))).await;
}
