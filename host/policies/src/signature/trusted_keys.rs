use std::fmt;
use std::path::PathBuf;

use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer};
use wasmspawner_core::config::PublicKeySource;
use webpki::RawPublicKeyEntity;
use webpki::ring as algorithms;

use super::claim::Claim;
use wasmspawner_core::values::digest::Digest;
use wasmspawner_files::confined_file;
use wasmspawner_registry::StoredSignature;

/// The maximum size of a file with keys, in bytes.
const MAX_KEY_FILE_BYTES: u64 = 64 << 10;

/// The signature algorithms that `cosign` uses with a key. With Ed25519 it signs digests (Ed25519ph), which `ring`
/// cannot verify.
const ALGORITHMS: [&dyn SignatureVerificationAlgorithm; 5] = [
    algorithms::ECDSA_P256_SHA256,
    algorithms::ECDSA_P384_SHA256,
    algorithms::ECDSA_P384_SHA384,
    algorithms::RSA_PKCS1_2048_8192_SHA256,
    algorithms::RSA_PSS_2048_8192_SHA256_LEGACY_KEY,
];

/// The length of the shortest RSA key of 2048 bits, in bytes, in the form that PEM encodes.
const RSA_2048: usize = 290;

/// The public keys that may sign a policy.
#[derive(Debug)]
pub(crate) struct TrustedKeys(Vec<(Signer, SubjectPublicKeyInfoDer<'static>)>);

/// The key that signed a component.
#[derive(Clone, Debug)]
pub(crate) struct Signer {
    /// The key, as the configuration names it.
    pub(crate) name: String,
    /// The digest of the key itself.
    pub(crate) key: Digest,
}

/// A public key that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the public key {key} {problem}")]
pub struct WrongKey {
    /// The key, as the configuration names it.
    key: String,
    /// A description of the problem.
    problem: String,
}

/// The error of a component that no trusted key has signed.
#[derive(Debug)]
pub struct NotSigned {
    component: Signed,
    /// The number of signatures that were found, by other keys or for other content.
    found: usize,
    /// The reason that a further signature could not be read.
    problem: Option<String>,
}

#[derive(Debug)]
enum Signed {
    /// The file of a component.
    File(PathBuf),
    /// The manifest of an artifact in a registry: its repository and digest.
    Artifact(String),
}

impl fmt::Display for NotSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.found {
            0 if self.problem.is_some() => {}
            0 => f.write_str("it is not signed, and `signed_by` wants a signature; ")?,
            1 => f.write_str("its signature is by no key of `signed_by`, or for something else; ")?,
            found => write!(f, "none of its {found} signatures is by a key of `signed_by`, and for it; ")?,
        }
        if let Some(problem) = &self.problem {
            write!(f, "what may be a signature cannot be used: {problem}; ")?;
        }
        match &self.component {
            Signed::File(path) => {
                let path = path.display();
                write!(
                    f,
                    "sign it with `cosign sign-blob --key KEY --bundle {path}.sigstore.json {path}`, or name the signer's public key"
                )
            }
            Signed::Artifact(reference) => {
                write!(f, "sign it with `cosign sign --key KEY {reference}`, or name the signer's public key")
            }
        }
    }
}

impl std::error::Error for NotSigned {}

impl NotSigned {
    /// Creates the error for the file of a component.
    pub(super) fn file(path: PathBuf, found: usize, problem: Option<String>) -> Self {
        Self { component: Signed::File(path), found, problem }
    }

    /// Creates the error for an artifact: its repository and the digest of its manifest.
    pub(crate) fn artifact(reference: String, found: usize, problem: Option<String>) -> Self {
        Self { component: Signed::Artifact(reference), found, problem }
    }
}

impl TrustedKeys {
    /// Reads the keys.
    pub(crate) fn read(sources: &[PublicKeySource]) -> Result<Self, WrongKey> {
        let mut keys = Vec::new();
        for (index, source) in sources.iter().enumerate() {
            let (name, pem) = match source {
                PublicKeySource::Pem(pem) => (format!("signed_by[{index}]"), Ok(pem.clone())),
                PublicKeySource::File(path) => {
                    (path.display().to_string(), confined_file::read_text(path, MAX_KEY_FILE_BYTES))
                }
            };
            let wrong = |problem: String| WrongKey { key: name.clone(), problem };
            let pem = pem.map_err(|error| wrong(format!("cannot be read: {error}")))?;
            let of_source = keys_in(&pem).map_err(wrong)?;
            let several = of_source.len() > 1;
            let named = |(key, position): (SubjectPublicKeyInfoDer<'static>, usize)| {
                let name = if several { format!("{name}, key {position}") } else { name.clone() };
                (Signer { name, key: Digest::sha256(&key) }, key)
            };
            keys.extend(of_source.into_iter().zip(1..).map(named));
        }
        Ok(Self(keys))
    }

    /// Returns the trusted key with this digest, if there is one.
    pub(super) fn signer_with(&self, digest: &Digest) -> Option<Signer> {
        self.0.iter().map(|(signer, _)| signer).find(|signer| signer.key == *digest).cloned()
    }

    /// Returns the signer of the artifact with this manifest.
    pub(crate) fn signer_of_artifact(&self, manifest: &Digest, stored: &[StoredSignature]) -> Option<Signer> {
        let claims = stored.iter().filter_map(Claim::read);
        claims.filter(|claim| claim.about.contains(manifest)).find_map(|claim| {
            claim.signatures.iter().find_map(|signature| self.signer(&claim.signed, signature))
        })
    }

    /// Returns the key that made this signature of these bytes.
    pub(super) fn signer(&self, signed: &[u8], signature: &[u8]) -> Option<Signer> {
        let has_signed = |key: &SubjectPublicKeyInfoDer<'_>| {
            RawPublicKeyEntity::try_from(key).is_ok_and(|key| {
                ALGORITHMS.iter().any(|algorithm| key.verify_signature(*algorithm, signed, signature).is_ok())
            })
        };
        self.0.iter().find(|(_, key)| has_signed(key)).map(|(signer, _)| signer.clone())
    }
}

/// Reads the public keys in a text in PEM.
fn keys_in(pem: &str) -> Result<Vec<SubjectPublicKeyInfoDer<'static>>, String> {
    if pem.contains("PRIVATE KEY-----") {
        return Err("has a private key, which nobody but the signer may have; name the public key".to_owned());
    }
    let keys: Result<Vec<_>, _> = SubjectPublicKeyInfoDer::pem_slice_iter(pem.as_bytes()).collect();
    match keys {
        Ok(keys) if keys.is_empty() => {
            Err("has no public key in PEM, as `cosign generate-key-pair` writes it into cosign.pub"
                .to_owned())
        }
        Ok(keys) if keys.iter().all(is_usable) => Ok(keys),
        Ok(_) => Err("is no key of ECDSA (P-256 or P-384) or RSA (2048 bits or more)".to_owned()),
        Err(error) => Err(format!("is not PEM: {error}")),
    }
}

/// Returns true if the key can verify signatures of one of the algorithms.
fn is_usable(key: &SubjectPublicKeyInfoDer<'static>) -> bool {
    let length = key.len();
    let Ok(key) = RawPublicKeyEntity::try_from(key) else { return false };
    let is_of = |algorithm: &dyn SignatureVerificationAlgorithm| {
        let verified = key.verify_signature(algorithm, b"", b"");
        !matches!(verified, Err(webpki::Error::UnsupportedSignatureAlgorithmForPublicKeyContext(_)))
    };
    let is_short = is_of(algorithms::RSA_PKCS1_2048_8192_SHA256) && length < RSA_2048;
    !is_short && ALGORITHMS.into_iter().any(is_of)
}
