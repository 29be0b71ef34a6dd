use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use oci_client::Reference;

use super::oci_source::{self, Pulled};
use crate::engine::EngineOptions;
use crate::errors::LoadErrorKind;
use crate::signature::{Signer, Trust, TrustedKeys};
use wasmspawner_core::values::digest::Digest;
use wasmspawner_files::confined_file::{self, Folder, UnreadableFile};

/// The source of a policy's component.
#[derive(Clone, Debug)]
pub enum ComponentSource {
    /// The component's file, or a directory that contains exactly one `*.wasm`.
    File(PathBuf),
    /// An artifact in a container registry.
    Registry(Box<Reference>),
}

impl fmt::Display for ComponentSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Registry(reference) => f.write_str(&reference.whole()),
        }
    }
}

/// A component that has been read, but not checked.
pub(crate) struct Component {
    pub(crate) bytes: Bytes,
    pub(crate) trust: Trust,
    pulled: Option<Pulled>,
}

impl ComponentSource {
    /// Reads the component. `expected` is its digest, if the configuration has it. If there are `keys`, one of them
    /// must have signed the component.
    pub(crate) async fn read(
        &self,
        expected: Option<&Digest>,
        keys: Option<&Arc<TrustedKeys>>,
        options: &EngineOptions,
    ) -> Result<Component, LoadErrorKind> {
        match self {
            Self::File(path) => {
                let (file, limit, trusted) = (path.clone(), options.component_bytes, keys.cloned());
                let read = tokio::task::spawn_blocking(move || read_signed(&file, limit, trusted.as_deref()));
                let panicked = |panic: tokio::task::JoinError| LoadErrorKind::Read {
                    path: path.clone(),
                    error: UnreadableFile::Io(panic.into()),
                };
                let (bytes, signer) = read.await.map_err(panicked)??;
                Ok(Component { bytes: bytes.into(), trust: Trust::new(keys.cloned(), signer), pulled: None })
            }
            Self::Registry(reference) => {
                let pulling = oci_source::component(reference, expected, keys.map(Arc::as_ref), options);
                let pulled = Box::pin(pulling).await?;
                let trust = Trust::new(keys.cloned(), pulled.signer.clone());
                Ok(Component { bytes: pulled.component.clone(), trust, pulled: Some(pulled) })
            }
        }
    }
}

impl Component {
    /// Creates a component from a record of the service.
    pub(crate) fn recorded(bytes: Bytes, trust: Trust) -> Self {
        Self { bytes, trust, pulled: None }
    }

    /// Keeps a component from a registry for later starts. Called once the component has been checked.
    pub(crate) fn keep(self) {
        if let Some(pulled) = self.pulled {
            pulled.keep();
        }
    }
}

/// Reads the component's file, or the only one of a folder. Returns its content and its signer.
fn read_signed(
    path: &Path,
    limit: u64,
    keys: Option<&TrustedKeys>,
) -> Result<(Vec<u8>, Option<Signer>), LoadErrorKind> {
    let (file, bytes) = read_file(path, limit)?;
    let signer = keys.map(|keys| keys.signer_of_file(&file, &bytes)).transpose();
    Ok((bytes, signer.map_err(LoadErrorKind::NotSigned)?))
}

fn read_file(path: &Path, limit: u64) -> Result<(PathBuf, Vec<u8>), LoadErrorKind> {
    let failed = |error: UnreadableFile| LoadErrorKind::Read { path: path.to_owned(), error };
    if !path.is_dir() {
        return Ok((path.to_owned(), confined_file::read(path, limit).map_err(failed)?));
    }
    let folder = Folder::open(path).map_err(|error| failed(error.into()))?;
    let mut components: Vec<_> = folder.names().map_err(|error| failed(error.into()))?;
    components.retain(|name| Path::new(name).extension().is_some_and(|extension| extension == "wasm"));
    match components.as_slice() {
        [file] => {
            let read = folder.read(Path::new(file), limit);
            let path = path.join(file);
            let bytes = read.map_err(|error| LoadErrorKind::Read { path: path.clone(), error })?;
            Ok((path, bytes))
        }
        _ => Err(LoadErrorKind::AmbiguousDirectory { path: path.to_owned(), found: components.len() }),
    }
}
