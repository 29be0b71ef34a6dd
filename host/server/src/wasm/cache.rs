use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use wasmtime::component::Component;

use super::engine::Engine;
use super::errors::{EngineError, LoadErrorKind};
use crate::whole_file;
use wasmspawner_core::digest::Digest;

/// Creates the cache directory, or checks that nobody else can write into an existing one, because the files in it are
/// executed as machine code.
pub(super) fn open(directory: &Path) -> Result<(), EngineError> {
    let cache = |source| EngineError::Cache { path: directory.to_owned(), source };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(cache)?;
    let metadata = std::fs::metadata(directory).map_err(cache)?;
    let open_to_others = metadata.mode() & 0o077;
    let ours = metadata.uid() == rustix::process::geteuid().as_raw() && open_to_others == 0;
    if ours { Ok(()) } else { Err(EngineError::CacheNotPrivate(directory.to_owned())) }
}

/// The compiled component, from the cache if the same engine has compiled the same bytes before.
pub(super) async fn compiled(
    engine: &Arc<Engine>,
    digest: &Digest,
    bytes: &[u8],
) -> Result<Component, LoadErrorKind> {
    let file = engine.options.cache.as_ref().map(|directory| directory.join(file_name(engine, digest)));
    if let Some(component) = file.as_deref().and_then(|file| read(engine, file)) {
        return Ok(component);
    }
    let machine_code = engine.options.compiler.compile(bytes).await?;
    let component =
        deserialize(engine, &machine_code).map_err(|error| LoadErrorKind::Engine(format!("{error:#}")))?;
    if let Some(file) = file {
        // If the cache cannot be written, the only consequence is a slower start next time.
        if let Err(error) = whole_file::write(&file, &machine_code) {
            tracing::warn!(file = %file.display(), %error, "cannot write the compiled policy into the cache");
        }
    }
    Ok(component)
}

/// The name of the cached file. It differs between versions and settings of the engine.
fn file_name(engine: &Engine, digest: &Digest) -> String {
    let mut hasher = DefaultHasher::new();
    engine.wasm.precompile_compatibility_hash().hash(&mut hasher);
    format!("{}-{:016x}.cwasm", digest.hex(), hasher.finish())
}

/// Reads the file into memory instead of mapping it: a change of the file must not change, or crash, a running policy.
fn read(engine: &Engine, file: &Path) -> Option<Component> {
    let machine_code = std::fs::read(file).ok()?;
    let log = |error: &wasmtime::Error| {
        tracing::warn!(file = %file.display(), error = format!("{error:#}"), "compiling the policy anew");
    };
    deserialize(engine, &machine_code).inspect_err(log).ok()
}

fn deserialize(engine: &Engine, machine_code: &[u8]) -> wasmtime::Result<Component> {
    #[expect(
        unsafe_code,
        reason = "machine code cannot be verified; `open` made sure that only this user could write it"
    )]
    // SAFETY: the bytes are the compiler's own output: either directly, or by way of a file in a directory that only this
    // user may write, which `whole_file::write` put there.
    unsafe {
        Component::deserialize(&engine.wasm, machine_code)
    }
}
