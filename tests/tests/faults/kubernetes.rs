//! The most important cases on a real Kubernetes, whose only node is the one-machine cluster's kubelet.

use wasmspawner_tests::kubernetes::{Cluster, SKIPPED};

use crate::setup::Setup;
use crate::{outage, requests, watches};

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_a_real_kubernetes_only_delay_operations() {
    let Some(cluster) = Cluster::enter("faults").await.unwrap() else { return println!("{SKIPPED}") };
    if cluster.has_nodes().await.unwrap() {
        println!("skipped: the cluster has nodes, and a scheduler that does not know ours");
        return cluster.leave().await.unwrap();
    }
    let setup = Setup::start_on(&cluster).await;
    outage::spawns_through_an_outage(&setup).await;
    outage::stops_through_an_outage(&setup).await;
    requests::costs_objects_and_two(&setup).await;
    outage::stops_through_an_outage(&setup).await;
    watches::stops_without_watches(&setup).await;
    setup.leave().await;
    cluster.leave().await.unwrap();
}
