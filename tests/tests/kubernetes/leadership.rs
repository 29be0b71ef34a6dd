//! Two processes of one installation: one leads, the other stands by.

use std::net::Ipv4Addr;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, Secret};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::kubernetes::SKIPPED;
use wasmspawner_tests::proxy::{Fault, Proxy, Rule};
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::{until_running, until_some};

use crate::labs::{service_with, start};
use crate::site::{ONE_NAMESPACE, Site, until};

/// The name of the Lease of an installation that has the name of its namespace.
const LEASE: &str = "wasmspawner";

#[tokio::test(flavor = "multi_thread")]
async fn one_process_leads_and_another_takes_over() {
    let Some((site, labs)) = site_with_labs().await else { return println!("{SKIPPED}") };
    site.install_policy().await;
    let process = || service_with(&site, "single", &labs, |_| {});
    let (mut first, mut second) = (process(), process());
    first.run().await.unwrap();
    start(&first.user("ada").unwrap(), "ada").await;
    let pod = uid_of_pod(&site, "ada").await;

    second.begin().unwrap();
    second.logged("this one stands by").await.unwrap();
    assert_eq!(second.probes().get("/readyz").await.unwrap().status, 503);
    let refused = second.user("ada").unwrap().lab("ada").await.unwrap();
    assert_eq!(refused.problem().unwrap(), "503 not_ready", "a 404 would mean that there is no lab");
    start(&first.user("eve").unwrap(), "eve").await;
    let epoch = epoch_of(&site, "eve").await;

    // The first process does not know that it is no longer the leader.
    first.freeze().unwrap();
    second.until_ready().await.unwrap();
    let (ada, eve) = (second.user("ada").unwrap(), second.user("eve").unwrap());
    until_running(&ada, "ada").await;
    assert_eq!(uid_of_pod(&site, "ada").await, pod);
    eve.stop_to_end("eve").await.unwrap();
    start(&eve, "eve").await;
    assert!(epoch_of(&site, "eve").await > epoch);
    until(async || record_of(&site, "eve").await["status"]["status"] == "running").await;
    let (record, pod) = (record_of(&site, "eve").await, uid_of_pod(&site, "eve").await);
    first.thaw().unwrap();
    first.death().await.unwrap();
    assert!(first.log().contains("another process leads now"), "{}", first.log());
    assert_eq!((record_of(&site, "eve").await, uid_of_pod(&site, "eve").await), (record, pod));

    // A process that ends gives the Lease back, and its labs go on.
    second.end().unwrap();
    assert_eq!(holder(&site).await, None);
    first.run().await.unwrap();
    let ada = first.user("ada").unwrap();
    until_running(&ada, "ada").await;
    // A process that is started again on the same state need not wait either.
    first.crash_and_restart().await.unwrap();
    assert!(!first.log().contains("this one stands by"), "{}", first.log());
    for lab in ["ada", "eve"] {
        first.user(lab).unwrap().stop_to_end(lab).await.unwrap();
    }
    site.leave().await;
}

/// A spawn that was accepted goes on with the next leader, under the permissions of the chart, once its Secret exists. A
/// request that somebody has changed in the Secret does not: it would decide as whom the lab runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_spawn_goes_on_with_the_next_leader() {
    let Some((site, labs)) = site_with_labs().await else { return println!("{SKIPPED}") };
    site.install_policy().await;
    let secrets: Api<Secret> = Api::namespaced(site.cluster.client.clone(), &labs);
    let process = || service_with(&site, "single", &labs, |_| {});
    let (mut first, mut second) = (process(), process());
    first.meets("abort before create Pod");
    first.run().await.unwrap();
    second.begin().unwrap();
    second.logged("this one stands by").await.unwrap();
    let accepted = first.user("ada").unwrap().spawn("ada").await.unwrap();
    assert_eq!(accepted.status, 303);
    first.death().await.unwrap();
    let operation = record_of(&site, "ada").await["spec"]["operation"]["id"].clone();
    second.until_ready().await.unwrap();
    let ada = second.user("ada").unwrap();
    let events = ada.events("ada").await.unwrap().to_end().await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    assert_eq!(record_of(&site, "ada").await["spec"]["operation"]["id"], operation);
    ada.stop_to_end("ada").await.unwrap();
    second.end().unwrap();

    first.meets("abort before create Pod");
    first.run().await.unwrap();
    let eve = first.user("eve").unwrap();
    assert_eq!(eve.spawn("eve").await.unwrap().status, 303);
    first.death().await.unwrap();
    let mut secret = secrets.get("nb-eve").await.unwrap();
    let request = secret.data.as_mut().unwrap().get_mut("wasmspawner.request").unwrap();
    let text = String::from_utf8(request.0.clone()).unwrap();
    let as_another = text.replace(r#""uid":"#, r#""uid":1"#);
    assert_ne!(text, as_another);
    request.0 = as_another.into_bytes();
    secrets.replace("nb-eve", &PostParams::default(), &secret).await.unwrap();
    first.run().await.unwrap();
    let eve = first.user("eve").unwrap();
    let lab = until_some(async || {
        let lab: Value = eve.lab("eve").await.unwrap().json().unwrap();
        (lab["status"] != "starting").then_some(lab)
    })
    .await;
    assert_eq!((&lab["status"], &lab["reason"]), (&json!("failed"), &json!("Interrupted")), "{lab:#}");
    let kept: Value = serde_json::from_str(&text).unwrap();
    let token = kept["token"].as_str().unwrap();
    assert!(!token.is_empty() && !first.log().contains(token) && !second.log().contains(token));
    start(&eve, "eve").await;
    eve.stop_to_end("eve").await.unwrap();
    site.leave().await;
}

/// Whoever writes last in the name of an earlier leader is refused by Kubernetes itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_of_a_later_leader_is_written_over_by_nobody() {
    let Some((site, labs)) = site_with_labs().await else { return println!("{SKIPPED}") };
    let mut service = service_with(&site, "single", &labs, |_| {});
    service.run().await.unwrap();
    start(&service.user("ada").unwrap(), "ada").await;
    let epoch = epoch_of(&site, "ada").await;
    let records = site.spawns();
    let with = |epoch: u64| Patch::Merge(json!({ "spec": { "epoch": epoch } }));
    let params = PatchParams::default();
    let refused = records.patch("lab-ada", &params, &with(epoch - 1)).await.unwrap_err();
    assert!(refused.to_string().contains("a later leader has written this"), "{refused}");
    // That is no business of another installation, whose records have the same names.
    let eve = service.user("eve").unwrap();
    let mut foreign = records.get("lab-ada").await.unwrap();
    foreign.metadata = ObjectMeta { name: Some("lab-eve".to_owned()), ..ObjectMeta::default() };
    foreign.metadata.labels = Some([("wasmspawner.io/instance".to_owned(), "other".to_owned())].into());
    (foreign.data["spec"]["epoch"], foreign.data["spec"]["user"]) = (json!(epoch + 90), json!("eve"));
    records.create(&PostParams::default(), &foreign).await.unwrap();
    assert_eq!(eve.spawn("eve").await.unwrap().problem().unwrap(), "409 record_taken");
    until_running(&service.user("ada").unwrap(), "ada").await;
    // The service notices a later leader by its records, and ends.
    records.patch("lab-ada", &params, &with(epoch + 5)).await.unwrap();
    service.death().await.unwrap();
    // The next leadership is later than all of them, even without the Lease.
    let leases: Api<Lease> = Api::namespaced(site.cluster.client.clone(), site.name());
    leases.delete(LEASE, &DeleteParams::default()).await.unwrap();
    service.run().await.unwrap();
    let ada = service.user("ada").unwrap();
    until_running(&ada, "ada").await;
    ada.stop_to_end("ada").await.unwrap();
    start(&ada, "ada").await;
    assert!(epoch_of(&site, "ada").await > epoch + 5);
    ada.stop_to_end("ada").await.unwrap();
    records.delete("lab-eve", &DeleteParams::default()).await.unwrap();
    site.leave().await;
}

/// The process that leads writes its address into the EndpointSlice of the Service, and hands over when it is asked to end.
#[tokio::test(flavor = "multi_thread")]
async fn requests_are_led_to_the_process_that_leads() {
    let Some((site, labs)) = site_with_labs().await else { return println!("{SKIPPED}") };
    site.install_policy().await;
    let slices: Api<EndpointSlice> = Api::namespaced(site.cluster.client.clone(), site.name());
    // As in the chart, without endpoints.
    let of_chart = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": { "name": "wasmspawner", "labels": {
            "kubernetes.io/service-name": "wasmspawner", "wasmspawner.io/instance": site.name(),
        } },
        "addressType": "IPv4",
        "ports": [{ "name": "api", "port": 8090 }],
    });
    let by_helm = PatchParams::apply("helm");
    slices.patch("wasmspawner", &by_helm, &Patch::Apply(&of_chart)).await.unwrap();
    let process = |pod: &str, address| {
        let mut service = service_with(&site, "single", &labs, |config| {
            config["kubernetes"]["endpoint_slice"] = json!("wasmspawner");
        });
        service.is_in_pod(pod, address);
        service
    };
    let (here, there) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let (mut first, mut second) = (process("first", here), process("second", there));
    first.run().await.unwrap();
    for lab in ["ada", "eve"] {
        start(&first.user(lab).unwrap(), lab).await;
    }
    until(async || addresses(&slices).await == [here.to_string()]).await;

    second.run().await.unwrap();
    let ready = second.probes().get("/readyz").await.unwrap();
    assert!(ready.body.contains("another process leads"), "{ready:?}");
    let stray = second.user("ada").unwrap().lab("ada").await.unwrap();
    assert_eq!(stray.problem().unwrap(), "503 not_ready");
    assert_eq!(stray.header("connection"), "close", "the next request goes to the other");
    // An upgrade leaves the address alone, and what somebody else writes does not stay.
    let upgraded = slices.patch("wasmspawner", &by_helm, &Patch::Apply(&of_chart)).await.unwrap();
    assert_eq!(addresses_in(upgraded), [here.to_string()]);
    let nowhere = Patch::Merge(json!({ "endpoints": [] }));
    slices.patch("wasmspawner", &PatchParams::default(), &nowhere).await.unwrap();
    until(async || addresses(&slices).await == [here.to_string()]).await;

    // While it hands over, whoever follows the Service is answered, and what was begun is finished.
    let (of_first, of_second) = (first.user("ada").unwrap(), second.user("ada").unwrap());
    assert_eq!(first.user("eve").unwrap().stop("eve").await.unwrap().status, 202);
    first.ask_to_end().unwrap();
    until(async || {
        let answer = if addresses(&slices).await == [here.to_string()] {
            of_first.lab("ada").await
        } else {
            of_second.lab("ada").await
        };
        let answer = answer.unwrap();
        if answer.status != 200 {
            assert_eq!(answer.problem().unwrap(), "503 not_ready");
        }
        answer.status == 200 && addresses(&slices).await == [there.to_string()]
    })
    .await;
    first.death().await.unwrap();
    until_running(&of_second, "ada").await;
    let eve = second.user("eve").unwrap();
    until(async || eve.lab("eve").await.unwrap().status == 404).await;
    of_second.stop_to_end("ada").await.unwrap();
    // Nobody is left.
    second.end().unwrap();
    assert_eq!(addresses(&slices).await, [""; 0]);
    site.leave().await;
}

/// A leader that does not reach the API server cannot know whether another leads.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_cut_off_denies_no_lab() {
    let Some((site, labs)) = site_with_labs().await else { return println!("{SKIPPED}") };
    let (mut first, proxy) = behind_a_proxy(&site, &labs).await;
    let mut second = service_with(&site, "single", &labs, |_| {});
    first.run().await.unwrap();
    let (ada, hub) = (first.user("ada").unwrap(), first.hub().unwrap());
    start(&ada, "ada").await;
    let eve = first.user("eve").unwrap();
    let listed = async || hub.get(&format!("{PREFIX}/labs")).await.unwrap().status;
    let looked_up = async || (eve.lab("eve").await.unwrap().status, listed().await);
    assert_eq!(looked_up().await, (404, 200));

    // Nobody else is there: it goes on when it reaches the API server again.
    proxy.set_outage(true).await.unwrap();
    until(async || looked_up().await == (503, 503)).await;
    assert_eq!(ada.lab("ada").await.unwrap().json().unwrap()["status"], "running");
    proxy.set_outage(false).await.unwrap();
    until(async || looked_up().await == (404, 200)).await;
    until(async || eve.spawn("eve").await.unwrap().status == 303).await;
    until_running(&eve, "eve").await;
    eve.stop_to_end("eve").await.unwrap();

    // Another takes over meanwhile.
    second.begin().unwrap();
    second.logged("this one stands by").await.unwrap();
    proxy.set_outage(true).await.unwrap();
    second.until_ready().await.unwrap();
    start(&second.user("eve").unwrap(), "eve").await;
    assert_eq!(looked_up().await, (503, 503), "the lab of the later leader");
    proxy.set_outage(false).await.unwrap();
    first.death().await.unwrap();
    for lab in ["ada", "eve"] {
        second.user(lab).unwrap().stop_to_end(lab).await.unwrap();
    }
    site.leave().await;
}

/// Answers that take seconds are no reason to give the Lease up, and whoever stands by does not take it.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_api_server_does_not_end_a_leadership() {
    let Some((site, labs)) = site_with_labs().await else { return println!("{SKIPPED}") };
    let (mut first, proxy) = behind_a_proxy(&site, &labs).await;
    let mut second = service_with(&site, "single", &labs, |_| {});
    first.run().await.unwrap();
    second.begin().unwrap();
    second.logged("this one stands by").await.unwrap();
    let holder = holder(&site).await;
    let slow = proxy.add(Rule::new("leases", Fault::Delay(Duration::from_secs(2))));
    until(async || slow.hits() >= 5).await;
    start(&first.user("ada").unwrap(), "ada").await;
    assert_eq!(self::holder(&site).await, holder);
    first.user("ada").unwrap().stop_to_end("ada").await.unwrap();
    site.leave().await;
}

/// A cluster with the definition of records, and the namespace of its labs.
async fn site_with_labs() -> Option<(Site, String)> {
    let site = Site::enter(ONE_NAMESPACE).await?;
    site.install_definition().await;
    let labs = site.namespace("labs").await;
    Some((site, labs))
}

/// A service whose requests to the API server go through a proxy.
async fn behind_a_proxy(site: &Site, labs: &str) -> (Service, Proxy) {
    let proxy = Proxy::start(site.account_s_client().await).await.unwrap();
    let service = service_with(site, "single", labs, |_| {});
    std::fs::write(service.folder().join("kubeconfig"), proxy.kubeconfig()).unwrap();
    (service, proxy)
}

async fn addresses(slices: &Api<EndpointSlice>) -> Vec<String> {
    addresses_in(slices.get("wasmspawner").await.unwrap())
}

fn addresses_in(slice: EndpointSlice) -> Vec<String> {
    slice.endpoints.into_iter().flatten().flat_map(|endpoint| endpoint.addresses).collect()
}

async fn record_of(site: &Site, user: &str) -> Value {
    site.spawns().get(&format!("lab-{user}")).await.unwrap().data
}

async fn epoch_of(site: &Site, user: &str) -> u64 {
    record_of(site, user).await["spec"]["epoch"].as_u64().unwrap()
}

async fn uid_of_pod(site: &Site, user: &str) -> String {
    let pods: Api<Pod> = Api::namespaced(site.cluster.client.clone(), &site.namespace("labs").await);
    pods.get(&format!("nb-{user}")).await.unwrap().metadata.uid.unwrap()
}

async fn holder(site: &Site) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(site.cluster.client.clone(), site.name());
    leases.get(LEASE).await.unwrap().spec.unwrap().holder_identity
}
