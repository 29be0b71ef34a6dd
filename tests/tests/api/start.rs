//! Messages at the start: a start that cannot succeed ends with one clear line.

use kube::config::Kubeconfig;
use serde_json::{Value, json};
use wasmspawner_tests::service::Service;

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
        (
            "no-such-policy.wasm",
            json!({ "policies": [{ "name": "site", "path": "/nowhere/no-such-policy.wasm" }] }),
        ),
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
