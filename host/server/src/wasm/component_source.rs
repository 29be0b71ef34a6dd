use std::fmt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use oci_client::Reference;

use super::engine::EngineOptions;
use super::errors::LoadErrorKind;
use super::pulled::{self, Pulled};
use crate::confined_file::{self, Folder, UnreadableFile};
use wasmspawner_core::digest::Digest;

/// Where a policy's component comes from.
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

/// A component that was read, and is not checked yet.
pub(super) struct Component {
    pub(super) bytes: Bytes,
    pulled: Option<Pulled>,
}

impl ComponentSource {
    /// Reads the component. `expected` is its digest, if the configuration has it.
    pub(super) async fn read(
        &self,
        expected: Option<&Digest>,
        options: &EngineOptions,
    ) -> Result<Component, LoadErrorKind> {
        match self {
            Self::File(path) => {
                let (file, limit) = (path.clone(), options.component_bytes);
                let read = tokio::task::spawn_blocking(move || read_file(&file, limit));
                let panicked = |panic: tokio::task::JoinError| LoadErrorKind::Read {
                    path: path.clone(),
                    source: UnreadableFile::Io(panic.into()),
                };
                Ok(Component { bytes: read.await.map_err(panicked)??.into(), pulled: None })
            }
            Self::Registry(reference) => {
                let refused = |error| LoadErrorKind::Registry { reference: reference.whole(), error };
                let pulled = pulled::component(reference, expected, options).await.map_err(refused)?;
                Ok(Component { bytes: pulled.component.clone(), pulled: Some(pulled) })
            }
        }
    }
}

impl Component {
    /// Keeps a component from a registry for later starts, now that it is known to be good.
    pub(super) fn keep(self) {
        if let Some(pulled) = self.pulled {
            pulled.keep();
        }
    }
}

/// Reads the component's file, or the only one of a folder.
fn read_file(path: &Path, limit: u64) -> Result<Vec<u8>, LoadErrorKind> {
    let failed = |source: UnreadableFile| LoadErrorKind::Read { path: path.to_owned(), source };
    if !path.is_dir() {
        return confined_file::read(path, limit).map_err(failed);
    }
    let folder = Folder::open(path).map_err(|error| failed(error.into()))?;
    let mut components: Vec<_> = folder.names().map_err(|error| failed(error.into()))?;
    components.retain(|name| Path::new(name).extension().is_some_and(|extension| extension == "wasm"));
    match components.as_slice() {
        [file] => folder
            .read(Path::new(file), limit)
            .map_err(|source| LoadErrorKind::Read { path: path.join(file), source }),
        _ => Err(LoadErrorKind::AmbiguousDirectory { path: path.to_owned(), found: components.len() }),
    }
}
