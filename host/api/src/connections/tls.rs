//! The certificate of the REST API. It may be replaced while the service runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_util::sync::CancellationToken;
use wasmspawner_core::config::TlsConfig;

/// The period after which the files are read again.
const REREAD: Duration = Duration::from_secs(10);

/// The certificate of the REST API.
#[derive(Clone)]
pub struct Tls {
    files: TlsConfig,
    current: Arc<Current>,
}

#[derive(Debug)]
struct Current(ArcSwap<CertifiedKey>);

/// The reasons for which the certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or is not PEM.
    #[error("{key}: {} cannot be used: {problem}", path.display())]
    Unusable {
        /// The configuration key.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// The certificate and the key do not belong together, or are of an unknown kind.
    #[error("http.tls: {} and {} cannot be used together: {problem}", cert.display(), key.display())]
    Mismatch {
        /// The file with the certificate.
        cert: PathBuf,
        /// The file with the key.
        key: PathBuf,
        /// The problem.
        problem: rustls::Error,
    },
}

impl Tls {
    /// Reads the certificate and its key.
    pub fn open(files: TlsConfig) -> Result<Self, TlsError> {
        let current = Arc::new(Current(ArcSwap::from_pointee(read(&files)?)));
        Ok(Self { files, current })
    }

    /// Returns an acceptor. It uses the certificate that is current at the time of each connection.
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, rustls::Error> {
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&self.current) as Arc<dyn ResolvesServerCert>);
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Uses changed files until `shutdown`. Files that cannot be used, such as those of a renewal that is half done,
    /// leave the certificate as it is.
    pub async fn follow(&self, shutdown: CancellationToken) {
        let mut again = tokio::time::interval(REREAD);
        while shutdown.run_until_cancelled(again.tick()).await.is_some() {
            let tls = self.clone();
            if let Err(error) = tokio::task::spawn_blocking(move || tls.reread()).await {
                tracing::warn!(%error, "the certificate cannot be read again");
            }
        }
    }

    fn reread(&self) {
        match read(&self.files) {
            Ok(key) if key.cert != self.current.0.load().cert => {
                tracing::info!(path = %self.files.cert.display(), "the certificate has changed");
                self.current.0.store(Arc::new(key));
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the certificate stays as it is"),
        }
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

fn read(files: &TlsConfig) -> Result<CertifiedKey, TlsError> {
    let unusable = |key, path: &Path, error: &pem::Error| TlsError::Unusable {
        key,
        path: path.to_owned(),
        problem: error.to_string(),
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect)
        .map_err(|error| unusable("http.tls.cert", &files.cert, &error))?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| unusable("http.tls.key", &files.key, &error))?;
    CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|problem| TlsError::Mismatch {
        cert: files.cert.clone(),
        key: files.key.clone(),
        problem,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a new certificate and its key.
    fn write(files: &TlsConfig) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&files.cert, made.cert.pem()).unwrap();
        std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    }

    #[test]
    fn changed_files_are_used_once_they_belong_together() {
        let folder = tempfile::tempdir().unwrap();
        let files = TlsConfig { cert: folder.path().join("tls.crt"), key: folder.path().join("tls.key") };
        write(&files);
        let tls = Tls::open(files.clone()).unwrap();
        let current = || tls.current.0.load().cert.clone();
        let first = current();
        tls.reread();
        assert_eq!(current(), first);

        let old_key = std::fs::read(&files.key).unwrap();
        write(&files);
        let new_key = std::fs::read(&files.key).unwrap();
        std::fs::write(&files.key, &old_key).unwrap();
        tls.reread();
        assert_eq!(current(), first, "the key is still the old one");
        std::fs::write(&files.key, &new_key).unwrap();
        tls.reread();
        assert_ne!(current(), first);
    }

    #[test]
    fn an_error_names_the_key_and_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let files = TlsConfig { cert: folder.path().join("tls.crt"), key: folder.path().join("tls.key") };
        let error = |files: &TlsConfig| Tls::open(files.clone()).err().unwrap().to_string();
        assert!(error(&files).starts_with("http.tls.cert: "), "{}", error(&files));
        write(&files);
        std::fs::write(&files.key, "no key").unwrap();
        assert!(error(&files).starts_with("http.tls.key: "), "{}", error(&files));
        let other = TlsConfig { cert: files.cert.clone(), key: folder.path().join("other.key") };
        write(&TlsConfig { cert: folder.path().join("other.crt"), key: other.key.clone() });
        assert!(error(&other).contains("cannot be used together"), "{}", error(&other));
    }
}
