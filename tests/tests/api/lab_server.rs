//! Labs whose program is not Jupyter, with their own port and probe.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde_json::{Value, json};
use wasmspawner_tests::guests;
use wasmspawner_tests::service::Service;

use crate::BINARY;

const NAMESPACE: &str = "nublado-ada";

/// A site with one image, whose program listens on port 8787.
fn site(grants: &Value) -> impl FnOnce(&mut Value) {
    let policies = json!([{
        "name": "default",
        "path": guests::component("policy-default"),
        "grants": grants,
        "config": { "images": [{
            "name": "rstudio", "reference": "rocker/rstudio:4.5",
            "command": ["/init"], "port": 8787, "probe": { "http": "/health" },
        }] },
    }]);
    move |config| config["policies"] = policies
}

async fn get<K>(service: &Service, name: &str) -> K
where
    K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    kube::Api::<K>::namespaced(service.cluster().await.unwrap(), NAMESPACE).get(name).await.unwrap()
}

#[tokio::test]
async fn a_lab_that_is_not_jupyter_is_reached_on_its_own_port() {
    let mut service = Service::start_with(BINARY, site(&json!({ "ports": ["8700-8799"] }))).await.unwrap();
    let ada = service.user("ada").unwrap();
    let env = json!({
        "JUPYTERHUB_SERVICE_PREFIX": "/user/ada/",
        "JUPYTERHUB_SERVICE_URL": "http://0.0.0.0:8888/user/ada/",
    });
    assert_eq!(ada.spawn_with("ada", &json!({ "env": env })).await.unwrap().status, 303);
    let events = ada.events("ada").await.unwrap().to_end().await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");

    let pod: Pod = get(&service, "nb-ada").await;
    let container = &pod.spec.unwrap().containers[0];
    assert_eq!(container.command.as_deref(), Some(&["/init".to_owned()][..]));
    assert_eq!(container.ports.as_ref().unwrap()[0].container_port, 8787);
    for probe in [&container.startup_probe, &container.readiness_probe] {
        let request = probe.as_ref().unwrap().http_get.as_ref().unwrap();
        assert_eq!(request.path.as_deref(), Some("/health"), "complete, and not below the base URL");
    }
    let policy: NetworkPolicy = get(&service, "nb-ada").await;
    let rule = serde_json::to_value(&policy.spec.unwrap().ingress.unwrap()[0].ports).unwrap();
    assert_eq!(rule[0]["port"], 8787, "the firewall opens this port and no other: {rule}");
    let env: ConfigMap = get(&service, "nb-ada-env").await;
    assert_eq!(env.data.unwrap()["JUPYTERHUB_SERVICE_URL"], "http://0.0.0.0:8787/user/ada/");

    let url = |lab: Value| lab["url"].as_str().unwrap().rsplit_once(':').unwrap().1.to_owned();
    assert_eq!(url(ada.lab("ada").await.unwrap().json().unwrap()), "8787");
    service.end().unwrap();
    service.reconfigure(|config| config["lab"]["port"] = json!(9999)).unwrap();
    service.run().await.unwrap();
    assert_eq!(url(ada.lab("ada").await.unwrap().json().unwrap()), "8787", "after a restart");
}

#[tokio::test]
async fn a_port_without_a_grant_is_the_policy_s_fault() {
    let service = Service::start_with(BINARY, site(&json!({ "ports": [80, "9000-9099"] }))).await.unwrap();
    let ada = service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "failed");
    let lab = ada.lab("ada").await.unwrap().json().unwrap();
    assert_eq!((&lab["status"], &lab["pod"]), (&json!("failed"), &json!("missing")), "{lab:#}");
    service.logged("policy `default`: `port` needs the grant `ports` for `8787`").await.unwrap();
}

#[tokio::test]
async fn a_grant_that_is_no_port_stops_the_start() {
    let service = Service::prepare(BINARY, site(&json!({ "ports": [0] }))).unwrap();
    let output = service.run_to_end().unwrap();
    assert!(!output.status.success());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("neither a port from 1 to 65535 nor a range"), "{error}");
}
