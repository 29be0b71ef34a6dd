//! The secret that the ingress and this service share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use subtle::ConstantTimeEq as _;
use wasmspawner_core::values::secret::SecretString;

use super::AuthSetupError;

/// The content of the file `auth.headers.proof.shared-secret.file`. A changed file takes effect with the next request.
/// While it cannot be used, the last content stays valid.
pub(super) struct IngressSecret {
    path: PathBuf,
    last: ArcSwap<SecretString>,
}

/// The minimum length of the secret. A shorter one could be guessed.
const MIN_SECRET_BYTES: usize = 16;

impl IngressSecret {
    pub(super) fn open(path: PathBuf) -> Result<Self, AuthSetupError> {
        let text = std::fs::read_to_string(&path)
            .map_err(|error| AuthSetupError::UnreadableSecret { path: path.clone(), error })?;
        let secret = usable(&text).ok_or_else(|| AuthSetupError::WeakSecret { path: path.clone() })?;
        Ok(Self { path, last: ArcSwap::from_pointee(secret) })
    }

    /// True if `given` is the secret. The comparison takes the same time wherever the two differ.
    pub(super) async fn is(&self, given: &str) -> bool {
        match read(&self.path).await {
            Some(secret) => self.last.store(Arc::new(secret)),
            None => {
                tracing::warn!(path = %self.path.display(), "the ingress's secret cannot be read; the last one counts");
            }
        }
        bool::from(self.last.load().expose().as_bytes().ct_eq(given.as_bytes()))
    }
}

async fn read(path: &Path) -> Option<SecretString> {
    usable(&tokio::fs::read_to_string(path).await.ok()?)
}

fn usable(text: &str) -> Option<SecretString> {
    let secret = text.trim();
    let plain = secret.bytes().all(|byte| byte.is_ascii_graphic());
    (secret.len() >= MIN_SECRET_BYTES && plain).then(|| SecretString::new(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_changed_file_counts_at_once_and_an_unusable_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        for text in ["", "short\n", "with a space inside\n"] {
            std::fs::write(&file, text).unwrap();
            let error = IngressSecret::open(file.clone()).err().unwrap().to_string();
            assert!(error.contains("at least 16 characters"), "{error}");
        }
        std::fs::write(&file, "first-0123456789\n").unwrap();
        let secret = IngressSecret::open(file.clone()).unwrap();
        assert!(secret.is("first-0123456789").await);
        assert!(!secret.is("first-012345678").await);
        assert!(!secret.is("").await);
        std::fs::write(&file, "second-0123456789\n").unwrap();
        assert!(secret.is("second-0123456789").await);
        assert!(!secret.is("first-0123456789").await);
        std::fs::write(&file, "").unwrap();
        assert!(!secret.is("").await);
        assert!(secret.is("second-0123456789").await);
    }
}
