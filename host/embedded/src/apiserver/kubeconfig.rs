//! A kubeconfig for a listener.

use super::certificate::Certificate;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::net::SocketAddr;

/// The kubeconfig of a client that trusts `certificate` and shows `token`. It holds a secret: write it where only its
/// owner can read it.
pub fn kubeconfig(address: SocketAddr, certificate: &Certificate, token: &str) -> String {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "embedded",
        "clusters": [{"name": "embedded", "cluster": {
            "server": format!("https://{address}"),
            "certificate-authority-data": STANDARD.encode(certificate.pem()),
        }}],
        "users": [{"name": "embedded", "user": {"token": token}}],
        "contexts": [{"name": "embedded", "context": {
            "cluster": "embedded", "user": "embedded", "namespace": "default",
        }}],
    });
    // YAML reads JSON.
    format!("{config:#}\n")
}
