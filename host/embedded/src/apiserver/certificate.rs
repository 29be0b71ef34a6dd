//! A certificate for loopback. kubectl sends credentials over TLS only.

use std::net::IpAddr;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

/// Why a certificate cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The certificate could not be signed.
    #[error("cannot make a certificate for loopback")]
    Make(#[from] rcgen::Error),
    /// TLS does not take the certificate.
    #[error("cannot use the certificate for loopback")]
    Use(#[from] rustls::Error),
}

/// A self-signed certificate for `localhost` and the address that is listened on. Its key never leaves the process: make one at
/// each start, and tell clients to trust it by its [`pem`](Self::pem).
#[derive(Clone)]
pub struct Certificate {
    pem: String,
    acceptor: TlsAcceptor,
}

impl Certificate {
    /// Makes a certificate for a server at `address`, any of `127.0.0.0/8` or `::1`.
    pub fn for_loopback(address: IpAddr) -> Result<Self, CertificateError> {
        let names = ["localhost".to_owned(), address.to_string()];
        let made = rcgen::generate_simple_self_signed(names)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)?;
        Ok(Self { pem: made.cert.pem(), acceptor: TlsAcceptor::from(Arc::new(config)) })
    }

    /// The certificate in PEM, for clients to trust.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    pub(super) fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }
}
