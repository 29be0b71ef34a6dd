//! Documents of other services, and their last contents.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use wasmspawner_core::config::DocumentConfig;
use wasmspawner_core::values::digest::Digest;
use wasmspawner_core::values::secret::SecretString;

use super::datum::{Datum, MAX_DOCUMENT_BYTES};
use wasmspawner_files::confined_file;
use wasmspawner_files::secret_file::exposed_mode;
use wasmspawner_files::whole_file;
use wasmspawner_outgoing::document::DocumentRequest;

const ACCEPT: &str = "application/json, application/yaml, text/csv, text/plain";
/// The time limit for the download of a document.
const WITHIN: Duration = Duration::from_secs(10);
/// The maximum size of a token file, in bytes.
const MAX_TOKEN_BYTES: u64 = 16 << 10;

/// The last content of each document, used while its service does not answer.
pub(crate) struct Documents {
    kept: Mutex<HashMap<Origin, Kept>>,
    /// The folder in which the contents are kept for the next start.
    folder: Option<PathBuf>,
}

/// The location of a document, and the token that reads it: content that was read with one token must not be given to
/// the holder of another.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Origin {
    url: String,
    token_file: Option<PathBuf>,
}

impl Origin {
    fn from_document(document: &DocumentConfig) -> Self {
        Self { url: document.url.clone(), token_file: document.token_file.clone() }
    }
}

/// The last content of a document.
#[derive(Clone, Serialize, Deserialize)]
struct Kept {
    #[serde(flatten)]
    origin: Origin,
    read_at: Timestamp,
    datum: Datum,
}

/// The content of a document for policies.
pub(super) struct DocumentRead {
    pub(super) datum: Datum,
    pub(super) read_at: Timestamp,
    /// The reason that the document could not be read this time.
    pub(super) problem: Option<String>,
}

impl Documents {
    /// Creates a store that keeps documents in this folder. The folder must be private to the service.
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        Self { kept: Mutex::default(), folder }
    }

    /// Reads the document. If that fails, returns the last content.
    pub(super) async fn read(&self, document: &DocumentConfig) -> Result<DocumentRead, String> {
        match fetch(document).await {
            Ok(datum) => {
                let read_at = Timestamp::now();
                self.keep(Kept { origin: Origin::from_document(document), read_at, datum: datum.clone() })
                    .await;
                Ok(DocumentRead { datum, read_at, problem: None })
            }
            Err(problem) => match self.kept(&Origin::from_document(document)) {
                Some(Kept { datum, read_at, .. }) => {
                    Ok(DocumentRead { datum, read_at, problem: Some(problem) })
                }
                None => Err(problem),
            },
        }
    }

    async fn keep(&self, kept: Kept) {
        let before = {
            let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert(kept.origin.clone(), kept.clone())
        };
        let is_new = before.is_none_or(|before| before.datum.version != kept.datum.version);
        let Some(file) = self.file(&kept.origin).filter(|_| is_new) else { return };
        let (path, write) = (file.display().to_string(), move || {
            file.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            whole_file::write(&file, &serde_json::to_vec(&kept)?)
        });
        let written = tokio::task::spawn_blocking(write).await.map_err(std::io::Error::other);
        if let Err(error) = written.flatten() {
            tracing::warn!(path, %error, "a document cannot be kept for the next start");
        }
    }

    /// Deletes what is kept of all other documents: their contents are nobody's business any more.
    pub(crate) async fn keep_only(&self, documents: Vec<DocumentConfig>) {
        let origins: HashSet<Origin> = documents.iter().map(Origin::from_document).collect();
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).retain(|origin, _| origins.contains(origin));
        let Some(folder) = self.folder.clone() else { return };
        let files: HashSet<PathBuf> = origins.iter().filter_map(|origin| self.file(origin)).collect();
        let delete = move || {
            // Without a folder, nothing was kept.
            let Ok(entries) = std::fs::read_dir(folder) else { return };
            let paths = entries.flatten().map(|entry| entry.path());
            let is_document = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
            for path in paths.filter(is_document).filter(|path| !files.contains(path)) {
                if let Err(error) = std::fs::remove_file(&path) {
                    let path = path.display();
                    tracing::warn!(%path, %error, "a document that no policy reads any more cannot be deleted");
                }
            }
        };
        if let Err(panic) = tokio::task::spawn_blocking(delete).await {
            tracing::warn!(%panic, "documents that no policy reads any more cannot be deleted");
        }
    }

    fn kept(&self, origin: &Origin) -> Option<Kept> {
        let known = self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(origin).cloned();
        known.or_else(|| {
            let kept: Kept = serde_json::from_slice(&std::fs::read(self.file(origin)?).ok()?).ok()?;
            (kept.origin == *origin).then_some(kept)
        })
    }

    fn file(&self, origin: &Origin) -> Option<PathBuf> {
        let name = Digest::sha256(&serde_json::to_vec(origin).ok()?).hex();
        Some(self.folder.as_ref()?.join(format!("{name}.json")))
    }
}

async fn fetch(document: &DocumentConfig) -> Result<Datum, String> {
    let DocumentConfig { url, every: _, token_file } = document;
    let token = match token_file {
        Some(file) => Some(read_token(file).await.map_err(|error| format!("{}: {error}", file.display()))?),
        None => None,
    };
    let request = DocumentRequest {
        url,
        token: token.as_ref(),
        accept: ACCEPT,
        limit: MAX_DOCUMENT_BYTES,
        within: WITHIN,
    };
    let read = request.read().await.map_err(|error| error.to_string())?;
    let path = Path::new(url.split('?').next().unwrap_or_default());
    let is_csv = path.extension().is_some_and(|extension| extension == "csv")
        || read.media_type.starts_with("text/csv");
    let parse = move || if is_csv { Datum::from_csv(&read.text) } else { Datum::from_yaml(&read.text) };
    tokio::task::spawn_blocking(parse).await.map_err(|panic| panic.to_string())?
}

/// Reads the token in the file. The token is read each time, because it may be replaced while the service runs.
async fn read_token(file: &Path) -> Result<SecretString, String> {
    let metadata = tokio::fs::metadata(file).await.map_err(|error| error.to_string())?;
    if let Some(mode) = exposed_mode(&metadata) {
        return Err(format!("others may read it (mode {mode:o}); make it private with `chmod 600`"));
    }
    let path = file.to_owned();
    let read = tokio::task::spawn_blocking(move || confined_file::read_text(&path, MAX_TOKEN_BYTES));
    let text = read.await.map_err(|panic| panic.to_string())?.map_err(|error| error.to_string())?;
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("it must hold one token".to_owned());
    }
    Ok(SecretString::new(token))
}
