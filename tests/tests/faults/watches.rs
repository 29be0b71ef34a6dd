//! Watches become silent, break, or are refused because their resource version is too old.

use std::time::Duration;

use kube::api::DeleteParams;
use serde_json::json;
use wasmspawner_tests::proxy::{Fault, Rule};

use crate::setup::{Setup, eventually, lab, stop};

/// Silences every watch until its client closes it.
fn silence(setup: &Setup) {
    for kind in ["pods", "namespaces", "events", "spawns"] {
        setup.proxy.add(Rule::new(&format!("watch {kind}"), Fault::Silence));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_succeeds_without_watches() {
    stops_without_watches(&Setup::start(|_| {}).await).await;
}

pub(crate) async fn stops_without_watches(setup: &Setup) {
    let ada = setup.service.user("ada").unwrap();
    ada.spawn_to_end("ada").await.unwrap();
    silence(setup);
    assert_eq!(ada.stop("ada").await.unwrap().status, 202);
    let events = ada.events("ada").await.unwrap().to_end().await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    setup.nothing_is_left("ada", "nothing is left").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_watches_a_spawn_is_decided_by_a_read() {
    let setup = Setup::start(|config| config["limits"] = json!({ "spawn": "20s" })).await;
    silence(&setup);
    let ada = setup.service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "its pod is ready: {events:#?}");
    let name = "fault.not-ready";
    let user = setup.service.user(name).unwrap();
    let events = user.spawn_to_end(name).await.unwrap();
    assert_eq!(events.last().unwrap().kind, "failed", "its pod is not: {events:#?}");
    assert_eq!(lab(&user, name).await["reason"], "SpawnTimeout");
    stop(&ada, "ada").await;
    stop(&user, name).await;
    setup.nothing_is_left("fault", "nothing is left of the failure").await;
    setup.nothing_is_left("ada", "nothing is left").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_watches_do_not_change_running_labs() {
    let setup = Setup::start(|_| {}).await;
    let ada = setup.service.user("ada").unwrap();
    let before = ada.spawn_to_end("ada").await.unwrap();
    for fault in [Fault::Expire, Fault::Reset] {
        let rules: Vec<_> = ["pods", "namespaces", "events", "spawns"]
            .iter()
            .map(|kind| setup.proxy.add(Rule::new(&format!("watch {kind}"), fault.clone()).times(3)))
            .collect();
        let all_hit = async || rules.iter().all(|rule| rule.hits() == 3).then_some(());
        eventually("each watch was broken three times", all_hit).await;
        setup.proxy.clear();
        let found = lab(&ada, "ada").await;
        assert_eq!(found["status"], "running", "{fault:?}: {found:#}");
    }
    assert_eq!(ada.events("ada").await.unwrap().to_end().await.unwrap(), before, "no other operation began");

    // The watches work again: the deletion of a pod is observed.
    setup.pods_of("ada").delete("nb-ada", &DeleteParams::default()).await.unwrap();
    eventually("the lab is gone", async || lab(&ada, "ada").await.is_null().then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spawn_completes_while_lists_and_watches_fail() {
    let setup = Setup::start(|_| {}).await;
    let ada = setup.service.user("ada").unwrap();
    let list = setup.proxy.add(Rule::new("list", Fault::Truncate).times(4));
    setup.proxy.add(Rule::new("watch", Fault::Delay(Duration::from_secs(1))).times(4));
    setup.proxy.add(Rule::new("watch pods", Fault::Expire).times(1));
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    assert!(list.hits() > 0);
    stop(&ada, "ada").await;
}
