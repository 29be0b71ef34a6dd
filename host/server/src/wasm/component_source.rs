use std::fmt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use oci_client::Reference;

use super::engine::EngineOptions;
use super::errors::LoadErrorKind;
use super::pulled::{self, Pulled};
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
                let bytes = read_file(&component_file(path)?, options.component_bytes)?.into();
                Ok(Component { bytes, pulled: None })
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

fn component_file(path: &Path) -> Result<PathBuf, LoadErrorKind> {
    let read = |source| LoadErrorKind::Read { path: path.to_owned(), source };
    if !path.metadata().map_err(read)?.is_dir() {
        return Ok(path.to_owned());
    }
    let mut components = Vec::new();
    for entry in path.read_dir().map_err(read)? {
        let file = entry.map_err(read)?.path();
        if file.extension().is_some_and(|extension| extension == "wasm") {
            components.push(file);
        }
    }
    match <[PathBuf; 1]>::try_from(components) {
        Ok([file]) => Ok(file),
        Err(components) => {
            Err(LoadErrorKind::AmbiguousDirectory { path: path.to_owned(), found: components.len() })
        }
    }
}

fn read_file(path: &Path, limit: u64) -> Result<Vec<u8>, LoadErrorKind> {
    let read = |source| LoadErrorKind::Read { path: path.to_owned(), source };
    let size = path.metadata().map_err(read)?.len();
    if size > limit {
        return Err(LoadErrorKind::TooLarge { path: path.to_owned(), size, limit });
    }
    std::fs::read(path).map_err(read)
}
