//! Machine code of policies that the services of all tests share: each policy is compiled once and not for each test.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, DirEntry};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// The number of files that are kept: those of the last builds.
const KEPT: usize = 200;

/// A folder with machine code.
pub struct CompiledPolicies(PathBuf);

impl CompiledPolicies {
    /// The folder beside the files that cargo keeps for the tests of the program.
    pub(crate) fn from_program(program: &Path) -> Self {
        static CLEANED: Once = Once::new();
        let target = program.ancestors().nth(2).unwrap_or(program);
        let folder = target.join("tmp/compiled-policies");
        // A file that cannot be removed does no harm.
        CLEANED.call_once(|| drop(remove_old(&folder)));
        Self(folder)
    }

    /// Machine code in any folder, such as that of tests that run the engine in their own process.
    pub fn in_folder(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// Copies the machine code of earlier tests into a cache.
    ///
    /// # Errors
    ///
    /// If the files cannot be linked or copied.
    pub fn lend_to(&self, cache: &Path) -> io::Result<()> {
        if self.0.exists() { link_all(&self.0, cache) } else { Ok(()) }
    }

    /// Keeps the content of a cache.
    ///
    /// # Errors
    ///
    /// If the files cannot be linked or copied.
    pub fn keep_of(&self, cache: &Path) -> io::Result<()> {
        if cache.exists() { link_all(cache, &self.0) } else { Ok(()) }
    }

    /// Copies the machine code of earlier tests for a service that has no state yet.
    pub(crate) fn lend(&self, state: &Path) -> io::Result<()> {
        if state.exists() { Ok(()) } else { self.lend_to(&of_service(state)) }
    }

    /// Keeps the machine code that the service has compiled.
    pub(crate) fn keep(&self, state: &Path) -> io::Result<()> {
        self.keep_of(&of_service(state))
    }
}

/// The folder in which a service keeps the machine code of its policies.
fn of_service(state: &Path) -> PathBuf {
    state.join("compiled-policies")
}

/// Links all files, which is safe because services never change such a file, but replace it.
fn link_all(from: &Path, to: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(to)?;
    for entry in from.read_dir()? {
        let file = entry?.path();
        if file.extension() != Some(OsStr::new("cwasm")) {
            continue;
        }
        let Some(name) = file.file_name() else { continue };
        match fs::hard_link(&file, to.join(name)) {
            // Another test was faster, or has removed it.
            Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => {}
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => copy(&file, to, name)?,
            linked => linked?,
        }
    }
    Ok(())
}

fn copy(file: &Path, to: &Path, name: &OsStr) -> io::Result<()> {
    // The copy gets its name when it is complete, so no service sees a part of it.
    let mut copy = tempfile::NamedTempFile::new_in(to)?;
    io::copy(&mut fs::File::open(file)?, &mut copy)?;
    copy.persist(to.join(name))?;
    Ok(())
}

fn remove_old(folder: &Path) -> io::Result<()> {
    let mut files: Vec<DirEntry> = folder.read_dir()?.collect::<io::Result<_>>()?;
    let age = |file: &DirEntry| file.metadata().and_then(|metadata| metadata.modified()).ok();
    files.sort_by_key(|file| std::cmp::Reverse(age(file)));
    files.iter().skip(KEPT).try_for_each(|file| fs::remove_file(file.path()))
}
