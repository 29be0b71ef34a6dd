//! The API behind TLS.

use serde_json::json;
use tokio::io::AsyncReadExt as _;
use wasmspawner_core::users::access::Scope;
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::service::Service;

use crate::BINARY;

/// A service with a certificate for its address, and that certificate.
async fn service(max_connections: usize) -> (Service, reqwest::Certificate) {
    let mut service = Service::prepare(BINARY, |_| {}).unwrap();
    let made = rcgen::generate_simple_self_signed([service.api().ip().to_string()]).unwrap();
    let (cert, key) = (service.folder().join("tls.crt"), service.folder().join("tls.key"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    service
        .reconfigure(|config| {
            config["http"]["tls"] = json!({ "cert": cert, "key": key });
            config["http"]["max_connections"] = json!(max_connections);
            config["http"]["proxies"] = json!(["127.0.0.0/8"]);
        })
        .unwrap();
    service.run().await.unwrap();
    (service, reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap())
}

#[tokio::test]
async fn the_api_is_served_with_the_certificate_and_not_without_tls() {
    let (service, authority) = service(100).await;
    let admin = service.client("admin", &[Scope::AdminNotebook]).unwrap();
    assert!(admin.get(&format!("{PREFIX}/labs")).await.is_err(), "no answer without TLS");
    let client = reqwest::Client::builder().tls_certs_only([authority]).build().unwrap();
    let url = format!("https://{}{PREFIX}/openapi.json", service.api());
    assert_eq!(client.get(url).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn the_command_line_finds_the_api_of_its_state_directory() {
    let (service, _) = service(100).await;
    let labs = |trusted: &str| {
        let mut command = std::process::Command::new(BINARY);
        command.args(["labs", "list", "--state-dir"]).arg(service.folder().join("state"));
        command.env("SSL_CERT_FILE", service.folder().join(trusted));
        command.env("WASMSPAWNER_TOKEN", "unused").output().unwrap()
    };
    // The tests keep the tokens beside the state directory. The command creates its own inside that directory.
    std::fs::copy(service.folder().join("tokens.yaml"), service.folder().join("state/tokens.yaml")).unwrap();
    let output = labs("tls.crt");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("the token is not valid"), "it reaches the service: {stderr}");
}

/// A client that opens connections and sends nothing does not lock others out for ever.
#[tokio::test]
async fn connections_beyond_the_limit_wait_until_others_end() {
    let (service, authority) = service(2).await;
    let mut idle = Vec::new();
    for _ in 0..2 {
        idle.push(tokio::net::TcpStream::connect(service.api()).await.unwrap());
    }
    let client = reqwest::Client::builder().tls_certs_only([authority]).build().unwrap();
    let url = format!("https://{}{PREFIX}/openapi.json", service.api());
    // The two connections are closed because they do not complete the TLS handshake in time. Then the third is
    // answered.
    assert_eq!(client.get(url).send().await.unwrap().status(), 200);
    for mut connection in idle {
        assert_eq!(connection.read(&mut [0; 1]).await.unwrap(), 0, "the service closed it");
    }
}
