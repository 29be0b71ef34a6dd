//! Messages at the start: a start that cannot succeed ends with one clear line.

use kube::config::Kubeconfig;
use serde_json::{Value, json};
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::guests;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::{until_running, until_some};

use crate::BINARY;

fn refused(change: impl FnOnce(&mut Value)) -> String {
    let service = Service::prepare(BINARY, change).unwrap();
    error_line(&service)
}

/// The only error line that a failing start prints.
fn error_line(service: &Service) -> String {
    let output = service.run_to_end().unwrap();
    assert!(!output.status.success(), "it started");
    let stderr = String::from_utf8(output.stderr).unwrap();
    let errors: Vec<&str> = stderr.lines().filter(|line| line.to_lowercase().contains("error")).collect();
    assert_eq!(errors.len(), 1, "not one line but:\n{stderr}");
    errors[0].to_owned()
}

#[tokio::test]
async fn an_error_in_the_configuration_names_its_key() {
    for (expected, change) in [
        ("concurent_spawns", json!({ "limits": { "concurent_spawns": 1 } })),
        ("http.max_connections", json!({ "http": { "max_connections": 0 } })),
        ("http.prefix", json!({ "http": { "prefix": "labs/" } })),
        ("auth.jupyterhub", json!({ "auth": { "modes": ["jupyterhub"] } })),
        ("policies[0]", json!({ "policies": [{ "name": "site" }] })),
        ("embedded.listen", json!({ "embedded": { "listen": "0.0.0.0:1", "runtime": "simulated" } })),
    ] {
        let line = refused(|config| {
            for (section, value) in change.as_object().unwrap() {
                config[section] = value.clone();
            }
        });
        assert!(line.contains(expected), "{expected} is not in: {line}");
    }
}

/// Labs run whether or not their policies can be loaded, and have to be shown and stopped.
#[tokio::test]
async fn a_policy_that_cannot_be_loaded_keeps_labs_from_starting_and_from_nothing_else() {
    let mut service = Service::prepare(BINARY, |_| {}).unwrap();
    let (component, away) = (service.folder().join("policy.wasm"), service.folder().join("away.wasm"));
    std::fs::copy(guests::component("guest-stagehand"), &component).unwrap();
    service.reconfigure(|config| config["policies"][0]["path"] = json!(component)).unwrap();
    service.run().await.unwrap();
    let (ada, eve) = (service.user("ada").unwrap(), service.user("eve").unwrap());
    let admin = service.admin().unwrap();
    ada.spawn_to_end("ada").await.unwrap();

    service.kill();
    std::fs::rename(&component, &away).unwrap();
    service.run().await.unwrap();
    until_running(&ada, "ada").await;
    let refused = eve.spawn("eve").await.unwrap();
    assert_eq!(refused.problem().unwrap(), "500 policy_failed", "{refused:?}");
    assert!(refused.body.contains("stagehand") && refused.body.contains("PolicyNotLoaded"), "{refused:?}");
    let form = eve.get(&format!("{PREFIX}/spawn-form/eve")).await.unwrap();
    assert_eq!(form.problem().unwrap(), "500 policy_failed", "{form:?}");
    let policies = admin.get(&format!("{PREFIX}/policies")).await.unwrap();
    assert_eq!(policies.problem().unwrap(), "503 policies_missing", "{policies:?}");
    assert!(policies.body.contains("policy.wasm"), "{policies:?}");
    let metrics = service.probes().get("/metrics").await.unwrap().body;
    assert!(metrics.contains("wasmspawner_policies_missing 1"), "{metrics}");
    assert_eq!(ada.stop_to_end("ada").await.unwrap().last().unwrap().kind, "complete");

    // The service finds the file by itself.
    std::fs::rename(&away, &component).unwrap();
    until_some(async || (eve.spawn("eve").await.unwrap().status == 303).then_some(())).await;
    until_running(&eve, "eve").await;
    let metrics = service.probes().get("/metrics").await.unwrap().body;
    assert!(metrics.contains("wasmspawner_policies_missing 0"), "{metrics}");
}

#[tokio::test]
async fn the_error_about_a_port_in_use_names_the_address() {
    let service = Service::prepare(BINARY, |_| {}).unwrap();
    let _occupied = std::net::TcpListener::bind(service.api()).unwrap();
    let line = error_line(&service);
    assert!(line.contains(&service.api().to_string()), "{line}");
}

#[tokio::test]
async fn a_token_file_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let service = Service::prepare(BINARY, |_| {}).unwrap();
    let tokens = service.folder().join("tokens.yaml");
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o644)).unwrap();
    let line = error_line(&service);
    assert!(line.contains("chmod 600"), "{line}");
}

#[tokio::test]
async fn the_error_about_a_missing_configuration_names_the_file() {
    let service = Service::prepare(BINARY, |_| {}).unwrap();
    std::fs::remove_file(service.config_file()).unwrap();
    let line = error_line(&service);
    assert!(line.contains("config.yaml"), "{line}");
}

/// A service that does not verify certificates makes many connections, but warns only once.
#[tokio::test]
async fn the_warning_about_unverified_certificates_is_logged_once() {
    let cluster = Service::start(BINARY).await.unwrap();
    let mut kubeconfig = Kubeconfig::read_from(cluster.folder().join("state/kubeconfig")).unwrap();
    for named in &mut kubeconfig.clusters {
        let named = named.cluster.as_mut().unwrap();
        named.certificate_authority_data = None;
        named.insecure_skip_tls_verify = Some(true);
    }
    let mut service = Service::prepare(BINARY, |_| {}).unwrap();
    let file = service.folder().join("kubeconfig");
    std::fs::write(&file, serde_json::to_vec(&kubeconfig).unwrap()).unwrap();
    service
        .reconfigure(|config| {
            config.as_object_mut().unwrap().remove("embedded");
            config["kubernetes"] = json!({ "kubeconfig": file, "instance": "second" });
            config["names"] = json!({ "namespace": "second-{user_server}" });
        })
        .unwrap();
    service.run().await.unwrap();
    let ada = service.user("ada").unwrap();
    assert_eq!(ada.spawn_to_end("ada").await.unwrap().last().unwrap().kind, "complete");
    let log = service.log();
    let count = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    assert_eq!((count("certificate is not verified"), count("cert bypassed")), (1, 0), "{log}");
}
