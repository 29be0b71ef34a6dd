//! A certificate for loopback, and the kubeconfig that trusts it. kubectl sends credentials over TLS only.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// A self-signed certificate for `localhost` and the address of a listener. Its key never leaves the process, so a new
/// certificate is needed at each start. Clients trust it through the [`kubeconfig`].
#[derive(Clone)]
pub struct Certificate {
    pem: String,
    acceptor: TlsAcceptor,
}

impl Certificate {
    /// Creates a certificate for a server at `address`, any of `127.0.0.0/8` or `::1`.
    pub fn for_loopback(address: IpAddr) -> io::Result<Self> {
        let names = ["localhost".to_owned(), address.to_string()];
        let made = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|tls| tls.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key))
            .map_err(io::Error::other)?;
        Ok(Self { pem: made.cert.pem(), acceptor: TlsAcceptor::from(Arc::new(config)) })
    }

    pub(super) fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }
}

/// Returns the kubeconfig of a client that trusts `certificate` and sends `token`. The text holds a secret: write it to
/// a file that only its owner can read.
pub fn kubeconfig(address: SocketAddr, certificate: &Certificate, token: &str) -> String {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "embedded",
        "clusters": [{"name": "embedded", "cluster": {
            "server": format!("https://{address}"),
            "certificate-authority-data": STANDARD.encode(&certificate.pem),
        }}],
        "users": [{"name": "embedded", "user": {"token": token}}],
        "contexts": [{"name": "embedded", "context": {
            "cluster": "embedded", "user": "embedded", "namespace": "default",
        }}],
    });
    // JSON is valid YAML.
    format!("{config:#}\n")
}
