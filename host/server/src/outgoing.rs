//! The HTTP client for other services: the identity provider and JupyterHub.

use std::time::Duration;

use reqwest::Client;
use tokio_rustls::rustls::crypto::ring;
use wasmspawner_core::config::BaseUrl;

/// A client for the service at `url`, which may take `timeout` to answer. The system's certificate authorities are
/// trusted; on a system without any, services can still be reached over plain HTTP.
pub(crate) fn client(url: &BaseUrl, timeout: Duration) -> reqwest::Result<Client> {
    // The process has one cryptography provider. If one is installed already, this call fails and that one is used.
    let _ = ring::default_provider().install_default();
    let builder = Client::builder().timeout(timeout);
    let plain = url.as_str().starts_with("http://");
    let builder = if plain { builder.tls_certs_only([]) } else { builder };
    builder.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_can_be_made_for_http_and_https() {
        for url in ["http://hub:8081/hub/api", "https://hub.example.org/hub/api"] {
            let url = BaseUrl::try_from(url.to_owned()).unwrap();
            assert!(client(&url, Duration::from_secs(1)).is_ok(), "{}", url.as_str());
        }
    }
}
