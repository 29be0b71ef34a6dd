use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use wasmtime::component::Component;

use crate::engine::Engine;
use crate::errors::{EngineError, LoadErrorKind};
use wasmspawner_core::values::digest::Digest;
use wasmspawner_files::whole_file;

/// The time that a compiled component is kept after its last use.
const KEPT_FOR: Duration = Duration::from_hours(90 * 24);
/// The maximum size of all compiled components, in bytes: half of the volume that the chart has for them. Each new
/// version of a policy is a new file.
const KEPT: u64 = 512 << 20;

/// Creates the cache directory, or checks that an existing one belongs to this user and is closed to all others,
/// because the files in it are executed as machine code. Removes files that are not needed any more.
pub(crate) fn open(directory: &Path) -> Result<(), EngineError> {
    let cache = |error| EngineError::Cache { path: directory.to_owned(), error };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(cache)?;
    let metadata = std::fs::metadata(directory).map_err(cache)?;
    let open_to_others = metadata.mode() & 0o077;
    let ours = metadata.uid() == rustix::process::geteuid().as_raw() && open_to_others == 0;
    if !ours {
        return Err(EngineError::CacheNotPrivate(directory.to_owned()));
    }
    make_room(directory, KEPT);
    Ok(())
}

/// Removes files that were last used long ago, and the oldest files beyond `most` bytes in total. Every version and
/// configuration of a policy has a file of its own. A removed component that is still needed is compiled again.
fn make_room(directory: &Path, most: u64) {
    let entries = directory.read_dir().into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.path().extension().is_some_and(|ending| ending == "cwasm"));
    let mut files: Vec<(SystemTime, u64, PathBuf)> = files
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            Some((metadata.modified().ok()?, metadata.len(), entry.path()))
        })
        .collect();
    files.sort_by(|(one, ..), (other, ..)| other.cmp(one));
    let mut kept = 0;
    for (used, bytes, file) in files {
        kept += bytes;
        if kept > most || used.elapsed().is_ok_and(|age| age > KEPT_FOR) {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Returns the compiled component, from the cache if the same engine has compiled the same bytes before.
pub(crate) async fn compiled(
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
pub(crate) async fn compile(
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
        make_room(directory, KEPT);
    }
    Ok(component)
}

/// Returns the name of the cached file that is made from these digests. It differs between versions and settings of the
/// engine.
pub(crate) fn file_name(engine: &Engine, from: &[&Digest]) -> String {
    let mut hasher = DefaultHasher::new();
    engine.wasm.precompile_compatibility_hash().hash(&mut hasher);
    let from: Vec<_> = from.iter().map(|digest| digest.hex()).collect();
    format!("{}-{:016x}.cwasm", from.join("-"), hasher.finish())
}

/// Reads a component from a file in the cache. The file is read into memory instead of mapped: a change of the file
/// must not change, or crash, a running policy.
pub(crate) fn read(engine: &Engine, name: &str) -> Option<Component> {
    let file = engine.options.cache.as_ref()?.join(name);
    let machine_code = std::fs::read(&file).ok()?;
    // The modification time marks the last use. If it cannot be set, the only consequence is another compilation later.
    let _ = std::fs::File::open(&file).and_then(|file| file.set_modified(SystemTime::now()));
    let log = |error: &wasmtime::Error| {
        tracing::warn!(file = %file.display(), error = format!("{error:#}"), "compiling the policy anew");
    };
    deserialize(engine, &machine_code).inspect_err(log).ok()
}

/// Creates the component from machine code that the compiler of this service produced.
pub(crate) fn deserialize(engine: &Engine, machine_code: &[u8]) -> wasmtime::Result<Component> {
    #[expect(
        unsafe_code,
        reason = "machine code cannot be verified; `open` made sure that only this user could write it"
    )]
    // SAFETY: the bytes are the compiler's own output: either directly, or from a file that `whole_file::write` put
    // into a directory that only this user may write.
    unsafe {
        Component::deserialize(&engine.wasm, machine_code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let file = |name: &str, age: Duration| {
            let file = std::fs::File::create_new(folder.path().join(name)).unwrap();
            file.set_len(10).unwrap();
            file.set_modified(now - age).unwrap();
        };
        file("old.cwasm", KEPT_FOR * 2);
        file("first.cwasm", Duration::from_hours(3));
        file("second.cwasm", Duration::from_hours(2));
        file("third.cwasm", Duration::from_hours(1));
        file("else.json", Duration::from_hours(9));
        make_room(folder.path(), 29);
        let mut left: Vec<_> =
            folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["else.json", "second.cwasm", "third.cwasm"]);
    }
}
