use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wasmtime::component::Component;

use super::digest::Digest;
use super::engine::Engine;
use super::errors::{EngineError, LoadErrorKind};

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
    bytes: Vec<u8>,
) -> Result<Component, LoadErrorKind> {
    let file = engine.options.cache.as_ref().map(|directory| directory.join(file_name(engine, digest)));
    if let Some(component) = file.as_deref().and_then(|file| read(engine, file)) {
        return Ok(component);
    }
    let component = compile(engine, bytes).await?;
    if let Some(file) = file {
        // If the cache cannot be written, the only consequence is a slower start next time.
        if let Err(error) = write(&component, &file) {
            tracing::warn!(file = %file.display(), %error, "cannot write the compiled policy into the cache");
        }
    }
    Ok(component)
}

/// Compiles on a thread of its own, because it takes long. The effort is limited only by the size of the component and
/// by a timeout.
async fn compile(engine: &Arc<Engine>, bytes: Vec<u8>) -> Result<Component, LoadErrorKind> {
    let limit = engine.options.compile_timeout;
    let engine = Arc::clone(engine);
    let work = tokio::task::spawn_blocking(move || Component::from_binary(&engine.wasm, &bytes));
    match tokio::time::timeout(limit, work).await {
        Ok(Ok(compiled)) => compiled.map_err(|error| LoadErrorKind::Compile(format!("{error:#}"))),
        Ok(Err(panicked)) => Err(LoadErrorKind::Engine(panicked.to_string())),
        Err(_) => Err(LoadErrorKind::CompileTimeout(limit.as_secs())),
    }
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
    #[expect(
        unsafe_code,
        reason = "machine code cannot be verified; `open` made sure that only this user could write it"
    )]
    // SAFETY: the file is in a directory that only this user may write, was written by `write` below from
    // this engine's own output, and appears there complete or not at all.
    let component = unsafe { Component::deserialize(&engine.wasm, machine_code) };
    let log = |error: &wasmtime::Error| {
        tracing::warn!(file = %file.display(), error = format!("{error:#}"), "compiling the policy anew");
    };
    component.inspect_err(log).ok()
}

fn write(component: &Component, file: &Path) -> std::io::Result<()> {
    let machine_code = component.serialize().map_err(|error| std::io::Error::other(format!("{error:#}")))?;
    let mut unfinished = PathBuf::from(file);
    unfinished.set_extension(format!("{}.tmp", std::process::id()));
    std::fs::write(&unfinished, machine_code)?;
    std::fs::rename(unfinished, file)
}
