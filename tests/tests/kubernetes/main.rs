//! The service on a real Kubernetes, with exactly the permissions in `deploy/permissions` and under exactly the policy in
//! `deploy/admission-policy.yaml`. The only node is the one-machine cluster's kubelet.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "skipped tests are printed")]

mod adversaries;
mod blueprints;
mod certificates;
mod claims;
mod dask_pools;
mod definition;
mod environments;
mod environments_measured;
mod kernels;
mod labs;
mod leadership;
mod logs;
mod network_policy;
mod prepulls;
mod quotas;
mod restore;
mod services;
mod shared_history;
mod site;
mod workloads;

use wasmspawner_tests::kubernetes::SKIPPED;

use labs::{a_cluster_without_the_definition, in_a_namespace_that_stays, in_deleted_namespaces};
use restore::volumes_return_and_labs_can_be_started_again;
use site::{CLUSTER_WIDE, ONE_NAMESPACE, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_wasmspawner-under-test");

#[tokio::test(flavor = "multi_thread")]
async fn labs_start_and_stop_with_the_cluster_wide_permissions() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    a_cluster_without_the_definition(&site);
    site.install_definition().await;
    in_deleted_namespaces(&site).await;
    in_a_namespace_that_stays(&site, "retain", &format!("{}-retain-ada", site.name())).await;
    site.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn labs_start_and_stop_with_the_permissions_for_one_namespace() {
    let Some(site) = Site::enter(ONE_NAMESPACE).await else { return println!("{SKIPPED}") };
    site.install_definition().await;
    // The policy can only refuse more than the permissions do.
    site.install_policy().await;
    let labs = site.namespace("labs").await;
    in_a_namespace_that_stays(&site, "single", &labs).await;
    site.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_lost_is_restored_from_a_backup() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.install_definition().await;
    volumes_return_and_labs_can_be_started_again(&site, &site.namespace("retain-ada").await).await;
    site.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn labs_start_and_stop_under_the_admission_policy() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.install_definition().await;
    site.install_policy().await;
    in_deleted_namespaces(&site).await;
    let theirs = site.namespace("existing-ada").await;
    in_a_namespace_that_stays(&site, "retain", &theirs).await;
    site.leave().await;
}
