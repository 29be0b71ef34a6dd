//! Kernels: started by a lab, in their own pods, under the same rules as the lab, and never without it.

use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::Client as Cluster;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use wasmspawner_tests::api::{Answer, Client, PREFIX};
use wasmspawner_tests::events::Events;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_some;

use crate::BINARY;

/// The secrets of a kernel, which only its pod and its client may see.
const KEY: &str = "key-of-the-client";
const PASSWORD: &str = "value-of-a-password";

pub(crate) fn body() -> Value {
    json!({
        "kernel_name": "python3",
        "command": ["python3", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "env": { "PASSWORD": PASSWORD },
        "connection": { "key": KEY, "signature_scheme": "hmac-sha256" },
    })
}

pub(crate) fn path(lab: &str, kernel: &str) -> String {
    format!("{PREFIX}/labs/{lab}/kernels/{kernel}")
}

pub(crate) async fn start(client: &Client, lab: &str, kernel: &str) -> Answer {
    client.send(client.request(Method::POST, &path(lab, kernel)).json(&body())).await.unwrap()
}

/// Starts a kernel while many requests of the user wait for each other. Asks again if its turn does not come within ten
/// seconds.
pub(crate) async fn start_in_turn(client: &Client, lab: &str, kernel: &str) -> Answer {
    until_some(async || Some(start(client, lab, kernel).await).filter(|answer| answer.status != 503)).await
}

pub(crate) async fn stop(client: &Client, lab: &str, kernel: &str) -> Answer {
    client.send(client.request(Method::DELETE, &path(lab, kernel))).await.unwrap()
}

/// Returns the kernel as soon as `wanted` is true for it; `Null` if there is none.
pub(crate) async fn until(
    client: &Client,
    lab: &str,
    kernel: &str,
    wanted: impl Fn(&Value) -> bool,
) -> Value {
    until_some(async || {
        let answer = client.get(&path(lab, kernel)).await.unwrap();
        let now = if answer.status == 404 { Value::Null } else { answer.json().unwrap() };
        wanted(&now).then_some(now)
    })
    .await
}

fn is_running(kernel: &Value) -> bool {
    kernel["status"] == "running"
}

pub(crate) async fn run(client: &Client, lab: &str, kernel: &str) -> Value {
    let answer = start(client, lab, kernel).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    until(client, lab, kernel, is_running).await
}

/// A service with one running lab.
pub(crate) async fn with_lab(name: &str, change: impl FnOnce(&mut Value)) -> (Service, Client) {
    let service = Service::start_with(BINARY, change).await.unwrap();
    let user = service.user(name).unwrap();
    let events = user.spawn_to_end(name).await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    (service, user)
}

pub(crate) async fn pods(cluster: &Cluster, namespace: &str) -> Vec<Pod> {
    let pods: Api<Pod> = Api::namespaced(cluster.clone(), namespace);
    pods.list(&ListParams::default()).await.unwrap().items
}

pub(crate) fn kernels(pods: Vec<Pod>) -> Vec<Pod> {
    pods.into_iter().filter(|pod| pod.metadata.name.as_ref().unwrap().contains("-kernel-")).collect()
}

pub(crate) async fn records(cluster: &Cluster) -> Vec<DynamicObject> {
    let kind = GroupVersionKind::gvk("wasmspawner.io", "v1alpha1", "Spawn");
    let api: Api<DynamicObject> = Api::namespaced_with(
        cluster.clone(),
        "wasmspawner",
        &ApiResource::from_gvk_with_plural(&kind, "spawns"),
    );
    api.list(&ListParams::default()).await.unwrap().items
}

/// A client with the token of a kernel's launcher, which is only in the kernel's Secret.
pub(crate) async fn launcher(service: &Service, namespace: &str, kernel: &Pod) -> Client {
    let secrets: Api<Secret> = Api::namespaced(service.cluster().await.unwrap(), namespace);
    let secret = secrets.get(kernel.metadata.name.as_ref().unwrap()).await.unwrap();
    let token = String::from_utf8(secret.data.unwrap()["kernel.token"].0.clone()).unwrap();
    service.stranger().with_token(&token)
}

async fn report(launcher: &Client, lab: &str, kernel: &str, process: Value) -> Answer {
    let request = launcher.request(Method::PUT, &format!("{}/launcher", path(lab, kernel)));
    launcher.send(request.json(&process)).await.unwrap()
}

#[tokio::test]
async fn a_kernel_runs_in_a_pod_like_that_of_its_lab() {
    let (service, ada) = with_lab("ada", |_| {}).await;
    let kernel = run(&ada, "ada", "k1").await;
    assert_eq!((&kernel["id"], &kernel["kernel_name"]), (&json!("k1"), &json!("python3")));
    assert_eq!(kernel["connection"]["shell_port"], 17_700);
    assert!(kernel["connection"]["ip"].is_string(), "{kernel:#}");
    assert_eq!(kernel["process"], Value::Null, "no launcher has reported");

    let cluster = service.cluster().await.unwrap();
    let all = pods(&cluster, "nublado-ada").await;
    let of_lab = all.iter().find(|pod| pod.metadata.name.as_deref() == Some("nb-ada")).unwrap().clone();
    let own = kernels(all).pop().unwrap();
    let (lab, spec) = (of_lab.spec.unwrap(), own.spec.clone().unwrap());
    assert_eq!(spec.containers[0].image, lab.containers[0].image);
    assert_eq!(spec.containers[0].security_context, lab.containers[0].security_context);
    assert_eq!(spec.security_context, lab.security_context);
    assert_eq!(spec.automount_service_account_token, Some(false));
    assert_eq!(spec.restart_policy.as_deref(), Some("Never"));
    assert_eq!(own.metadata.owner_references.as_ref().unwrap()[0].uid, of_lab.metadata.uid.unwrap());
    let secrets: Api<Secret> = Api::namespaced(cluster.clone(), "nublado-ada");
    let secret = secrets.get(own.metadata.name.as_ref().unwrap()).await.unwrap().data.unwrap();
    let connection: Value = serde_json::from_slice(&secret["kernel.connection.json"].0).unwrap();
    assert_eq!((&connection["key"], &connection["hb_port"]), (&json!(KEY), &json!(17_704)));
    let launch: Value = serde_json::from_slice(&secret["kernel.launch.json"].0).unwrap();
    assert!(launch["url"].as_str().unwrap().ends_with("/spawner/v1/labs/ada/kernels/k1"), "{launch}");
    assert_eq!(launch["env"]["PASSWORD"], PASSWORD);

    let listed = ada.get(&format!("{PREFIX}/labs/ada/kernels")).await.unwrap().json().unwrap();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["id"]), (1, &json!("k1")));
    let events = ada.get(&format!("{}/events", path("ada", "k1"))).await.unwrap().body;
    assert!(events.contains("event: complete\ndata: The kernel is ready\n"), "{events}");
    let labs = service.admin().unwrap().get(&format!("{PREFIX}/labs?status=all")).await.unwrap();
    assert_eq!(labs.json().unwrap(), json!(["ada"]), "a kernel is no lab");

    assert_eq!(stop(&ada, "ada", "k1").await.status, 202);
    until(&ada, "ada", "k1", Value::is_null).await;
    until_some(async || kernels(pods(&cluster, "nublado-ada").await).is_empty().then_some(())).await;
    until_some(async || (records(&cluster).await.len() == 1).then_some(())).await;
    assert!(secrets.get_opt(own.metadata.name.as_ref().unwrap()).await.unwrap().is_none());
    assert_eq!(ada.lab("ada").await.unwrap().json().unwrap()["status"], "running");
    assert_eq!(stop(&ada, "ada", "k1").await.problem().unwrap(), "404 unknown_kernel");
}

#[tokio::test]
async fn nothing_secret_is_in_records_answers_or_logs() {
    let (service, ada) = with_lab("ada", |_| {}).await;
    let kernel = run(&ada, "ada", "k1").await.to_string();
    let cluster = service.cluster().await.unwrap();
    let pod = kernels(pods(&cluster, "nublado-ada").await).pop().unwrap();
    let secrets: Api<Secret> = Api::namespaced(cluster.clone(), "nublado-ada");
    let secret = secrets.get(pod.metadata.name.as_ref().unwrap()).await.unwrap().data.unwrap();
    let token = String::from_utf8(secret["kernel.token"].0.clone()).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.clone(), "nublado-ada");
    let maps = maps.list(&ListParams::default()).await.unwrap().items;
    let shown = [
        ("answer", kernel),
        ("record", serde_json::to_string(&records(&cluster).await).unwrap()),
        ("pod", serde_json::to_string(&pod).unwrap()),
        ("config maps", serde_json::to_string(&maps).unwrap()),
        ("log", service.log()),
        ("history", ada.get(&format!("{PREFIX}/labs/ada/history")).await.unwrap().body),
    ];
    for (place, text) in shown {
        for secret in [KEY, PASSWORD, &token] {
            assert!(!text.contains(secret), "{secret} is in the {place}");
        }
    }
}

#[tokio::test]
async fn only_the_owner_of_a_lab_starts_and_commands_its_kernels() {
    let (service, ada) = with_lab("ada", |_| {}).await;
    run(&ada, "ada", "k1").await;
    let (eve, hub, nobody) = (service.user("eve").unwrap(), service.hub().unwrap(), service.stranger());
    for (method, at, sent) in [
        (Method::POST, path("ada", "k2"), body()),
        (Method::GET, path("ada", "k1"), json!({})),
        (Method::DELETE, path("ada", "k1"), json!({})),
        (Method::POST, format!("{}/signal", path("ada", "k1")), json!({ "signum": 9 })),
        (Method::POST, format!("{}/restart", path("ada", "k1")), json!({})),
        (Method::GET, format!("{}/events", path("ada", "k1")), json!({})),
        (Method::GET, format!("{PREFIX}/labs/ada/kernels"), json!({})),
    ] {
        let by = async |client: &Client| {
            client.send(client.request(method.clone(), &at).json(&sent)).await.unwrap()
        };
        assert_eq!(by(&eve).await.problem().unwrap(), "403 permission_denied", "{method} {at}");
        assert_eq!(by(&nobody).await.status, 401, "{method} {at}");
    }
    assert_eq!(
        start(&hub, "ada", "k2").await.problem().unwrap(),
        "403 permission_denied",
        "the Hub starts nothing"
    );
    assert!(is_running(&ada.get(&path("ada", "k1")).await.unwrap().json().unwrap()));
}

#[tokio::test]
async fn a_launcher_commands_nothing_and_reports_only_about_its_own_kernel() {
    let (service, ada) = with_lab("ada", |_| {}).await;
    let cluster = service.cluster().await.unwrap();
    run(&ada, "ada", "k1").await;
    let first = kernels(pods(&cluster, "nublado-ada").await).pop().unwrap();
    let launcher = launcher(&service, "nublado-ada", &first).await;
    run(&ada, "ada", "k2").await;
    let running = json!({ "number": 1, "state": "running" });
    assert_eq!(report(&launcher, "ada", "k1", running.clone()).await.status, 204);
    assert_eq!(report(&launcher, "ada", "k2", running.clone()).await.problem().unwrap(), "401 invalid_token");
    assert_eq!(report(&launcher, "ada", "k3", running.clone()).await.problem().unwrap(), "401 invalid_token");
    assert_eq!(report(&ada, "ada", "k1", running.clone()).await.problem().unwrap(), "401 invalid_token");
    assert_eq!(launcher.lab("ada").await.unwrap().status, 401);
    assert_eq!(stop(&launcher, "ada", "k1").await.status, 401);
    let nonsense = json!({ "number": 1, "state": "ended" });
    assert_eq!(report(&launcher, "ada", "k1", nonsense).await.problem().unwrap(), "422 invalid_process");
    let kernel = ada.get(&path("ada", "k1")).await.unwrap().json().unwrap();
    assert_eq!(kernel["process"], json!({ "number": 1, "state": "running", "exit_code": null }));

    // The token ends with the kernel, even if another kernel gets the same id.
    stop(&ada, "ada", "k1").await;
    until(&ada, "ada", "k1", Value::is_null).await;
    run(&ada, "ada", "k1").await;
    assert_eq!(report(&launcher, "ada", "k1", running).await.problem().unwrap(), "401 invalid_token");
    assert_eq!(ada.get(&path("ada", "k1")).await.unwrap().json().unwrap()["process"], Value::Null);
}

#[tokio::test]
async fn signals_and_restarts_reach_the_launcher_also_after_a_restart_of_the_service() {
    let keeps = |config: &mut Value| config["embedded"]["keep_labs"] = true.into();
    let (mut service, ada) = with_lab("ada", keeps).await;
    let before = run(&ada, "ada", "k1").await;
    let cluster = service.cluster().await.unwrap();
    let pod = kernels(pods(&cluster, "nublado-ada").await).pop().unwrap();
    let post = async |client: &Client, what: &str, sent: Value| {
        client
            .send(client.request(Method::POST, &format!("{}/{what}", path("ada", "k1"))).json(&sent))
            .await
            .unwrap()
    };
    let signal = json!({ "signum": 2 });
    assert_eq!(post(&ada, "signal", signal.clone()).await.problem().unwrap(), "409 no_launcher");
    assert_eq!(post(&ada, "restart", json!({})).await.problem().unwrap(), "409 no_launcher");

    let at_work = launcher(&service, "nublado-ada", &pod).await;
    let connect = async |client: &Client| {
        let request = client.request(Method::GET, &format!("{}/launcher", path("ada", "k1")));
        Events::from_response(request.send().await.unwrap().error_for_status().unwrap())
    };
    let mut commands = connect(&at_work).await;
    report(&at_work, "ada", "k1", json!({ "number": 1, "state": "running" })).await;
    assert_eq!(post(&ada, "signal", signal.clone()).await.status, 204);
    commands.until("event: signal\ndata: {\"number\":1,\"signum\":2}\n\n").await.unwrap();
    for nonsense in [json!({ "signum": 0 }), json!({ "signum": 99 }), json!({})] {
        assert_eq!(post(&ada, "signal", nonsense).await.status, 422);
    }
    let restarted = post(&ada, "restart", json!({})).await;
    assert_eq!(restarted.status, 202, "{restarted:?}");
    assert_eq!(
        restarted.json().unwrap()["process"],
        json!({ "number": 2, "state": "starting", "exit_code": null })
    );
    commands.until("event: launch\ndata: {\"number\":2}\n\n").await.unwrap();
    report(&at_work, "ada", "k1", json!({ "number": 2, "state": "ended", "exit_code": -9 })).await;
    let ended = ada.get(&path("ada", "k1")).await.unwrap().json().unwrap();
    assert_eq!(ended["process"], json!({ "number": 2, "state": "ended", "exit_code": -9 }));
    assert_eq!(post(&ada, "signal", signal.clone()).await.problem().unwrap(), "409 not_running");

    service.crash_and_restart().await.unwrap();
    let ada = service.user("ada").unwrap();
    let after = until(&ada, "ada", "k1", is_running).await;
    assert_eq!(after["connection"], before["connection"]);
    let at_work = launcher(&service, "nublado-ada", &pod).await;
    let mut commands = connect(&at_work).await;
    report(&at_work, "ada", "k1", json!({ "number": 3, "state": "running" })).await;
    assert_eq!(post(&ada, "signal", signal).await.status, 204);
    commands.until("data: {\"number\":3,\"signum\":2}").await.unwrap();
}

#[tokio::test]
async fn a_kernel_needs_a_running_lab() {
    let service = Service::start(BINARY).await.unwrap();
    let name = "fault.not-ready";
    let user = service.user(name).unwrap();
    assert_eq!(start(&user, name, "k1").await.problem().unwrap(), "404 unknown_lab");
    assert_eq!(user.spawn(name).await.unwrap().status, 303);
    assert_eq!(start(&user, name, "k1").await.problem().unwrap(), "409 lab_not_running");
    assert_eq!(user.get(&path(name, "k1")).await.unwrap().problem().unwrap(), "404 unknown_kernel");
    let wrong = start(&user, name, "a%2Fb").await;
    assert_eq!(wrong.problem().unwrap(), "422 invalid_name");
}

#[tokio::test]
async fn kernels_end_before_their_lab_and_nothing_is_left() {
    let single = |config: &mut Value| {
        config["kubernetes"] = json!({ "namespaces": "single" });
        config["names"] = json!({ "namespace": "labs" });
    };
    let (service, ada) = with_lab("ada", single).await;
    let grace = service.user("grace").unwrap();
    grace.spawn_to_end("grace").await.unwrap();
    for kernel in ["k1", "k2"] {
        run(&ada, "ada", kernel).await;
    }
    run(&grace, "grace", "k1").await;
    let events = ada.stop_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    let cluster = service.cluster().await.unwrap();
    let names = |pods: Vec<Pod>| pods.into_iter().filter_map(|pod| pod.metadata.name).collect::<Vec<_>>();
    let left = names(pods(&cluster, "labs").await);
    assert!(left.iter().all(|name| name.starts_with("nb-grace")) && left.len() == 2, "{left:?}");
    until_some(async || (records(&cluster).await.len() == 2).then_some(())).await;
    for found in
        Api::<Secret>::namespaced(cluster.clone(), "labs").list(&ListParams::default()).await.unwrap()
    {
        assert!(found.metadata.name.unwrap().starts_with("nb-grace"));
    }
    assert!(is_running(&grace.get(&path("grace", "k1")).await.unwrap().json().unwrap()));
    assert_eq!(start(&ada, "ada", "k3").await.problem().unwrap(), "404 unknown_lab");
}

#[tokio::test]
async fn a_lab_that_is_gone_after_a_restart_takes_its_kernels_with_it() {
    let keeps = |config: &mut Value| {
        config["embedded"]["keep_labs"] = true.into();
        config["kubernetes"]["delete_namespaces_after"] = "100ms".into();
    };
    let (mut service, ada) = with_lab("ada", keeps).await;
    run(&ada, "ada", "k1").await;
    // The service ends in the middle of the stop.
    service.meets("abort before delete Pod nb-ada");
    service.crash_and_restart().await.unwrap();
    let ada = service.user("ada").unwrap();
    until(&ada, "ada", "k1", is_running).await;
    // The service may end before it has answered.
    let _ = ada.stop("ada").await;
    service.death().await.unwrap();
    service.run().await.unwrap();
    let cluster = service.cluster().await.unwrap();
    until_some(async || records(&cluster).await.is_empty().then_some(())).await;
    assert!(pods(&cluster, "nublado-ada").await.is_empty());
}

#[tokio::test]
async fn a_kernel_whose_pod_was_deleted_by_hand_can_be_started_again() {
    let (service, ada) = with_lab("ada", |_| {}).await;
    run(&ada, "ada", "k1").await;
    let cluster = service.cluster().await.unwrap();
    let pod = kernels(pods(&cluster, "nublado-ada").await).pop().unwrap();
    let api: Api<Pod> = Api::namespaced(cluster, "nublado-ada");
    api.delete(pod.metadata.name.as_ref().unwrap(), &DeleteParams::default()).await.unwrap();
    until(&ada, "ada", "k1", Value::is_null).await;
    run(&ada, "ada", "k1").await;
}
