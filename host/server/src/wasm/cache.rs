use std::fs::DirEntry;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::Component;

use super::engine::Engine;
use super::errors::{EngineError, LoadErrorKind};
use crate::whole_file;
use wasmspawner_core::digest::Digest;

/// How long a compiled component is kept.
const KEPT_FOR: Duration = Duration::from_hours(90 * 24);

/// Creates the cache directory, or checks that nobody else can write into an existing one, because the files in it are
/// executed as machine code.
pub(super) fn open(directory: &Path) -> Result<(), EngineError> {
    let cache = |source| EngineError::Cache { path: directory.to_owned(), source };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(cache)?;
    let metadata = std::fs::metadata(directory).map_err(cache)?;
    let open_to_others = metadata.mode() & 0o077;
    let ours = metadata.uid() == rustix::process::geteuid().as_raw() && open_to_others == 0;
    if !ours {
        return Err(EngineError::CacheNotPrivate(directory.to_owned()));
    }
    remove_old(directory);
    Ok(())
}

/// Removes what was compiled long ago: every configuration of a policy has a file of its own. What is still needed is compiled
/// again.
fn remove_old(directory: &Path) {
    let is_old = |entry: &DirEntry| {
        let modified = entry.metadata().and_then(|metadata| metadata.modified()).ok();
        let age = modified.and_then(|modified| modified.elapsed().ok());
        age.is_some_and(|age| age > KEPT_FOR)
    };
    for entry in directory.read_dir().into_iter().flatten().flatten().filter(is_old) {
        if entry.path().extension().is_some_and(|extension| extension == "cwasm") {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The compiled component, from the cache if the same engine has compiled the same bytes before.
pub(super) async fn compiled(
    engine: &Arc<Engine>,
    digest: &Digest,
    bytes: &[u8],
) -> Result<Component, LoadErrorKind> {
    let name = file_name(engine, &[digest]);
    match read(engine, &name) {
        Some(component) => Ok(component),
        None => compile(engine, &name, bytes).await,
    }
}

/// Compiles a component, and puts its machine code into the cache.
pub(super) async fn compile(
    engine: &Arc<Engine>,
    name: &str,
    bytes: &[u8],
) -> Result<Component, LoadErrorKind> {
    let machine_code = engine.options.compiler.compile(bytes).await?;
    let component =
        deserialize(engine, &machine_code).map_err(|error| LoadErrorKind::Engine(format!("{error:#}")))?;
    if let Some(directory) = &engine.options.cache {
        let file = directory.join(name);
        // If the cache cannot be written, the only consequence is a slower start next time.
        if let Err(error) = whole_file::write(&file, &machine_code) {
            tracing::warn!(file = %file.display(), %error, "cannot write the compiled policy into the cache");
        }
    }
    Ok(component)
}

/// The name of the cached file of what follows from these. It differs between versions and settings of the engine.
pub(super) fn file_name(engine: &Engine, from: &[&Digest]) -> String {
    let mut hasher = DefaultHasher::new();
    engine.wasm.precompile_compatibility_hash().hash(&mut hasher);
    let from: Vec<_> = from.iter().map(|digest| digest.hex()).collect();
    format!("{}-{:016x}.cwasm", from.join("-"), hasher.finish())
}

/// The component of a file in the cache. It is read into memory instead of mapped: a change of the file must not change, or
/// crash, a running policy.
pub(super) fn read(engine: &Engine, name: &str) -> Option<Component> {
    let file = engine.options.cache.as_ref()?.join(name);
    let machine_code = std::fs::read(&file).ok()?;
    let log = |error: &wasmtime::Error| {
        tracing::warn!(file = %file.display(), error = format!("{error:#}"), "compiling the policy anew");
    };
    deserialize(engine, &machine_code).inspect_err(log).ok()
}

/// The component of machine code that the compiler of this service has made.
pub(super) fn deserialize(engine: &Engine, machine_code: &[u8]) -> wasmtime::Result<Component> {
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
