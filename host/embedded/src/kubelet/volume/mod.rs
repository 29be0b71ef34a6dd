//! Volumes as directories.
//!
//! There is no mount namespace: a volume is a directory under the kubelet's state directory, and the environment of
//! a process says where (see [`Mounts`]).

mod mounts;
mod plan;

pub(crate) use mounts::Mounts;
pub(crate) use plan::{Materialisation, MountError, PlannedFile, plan};

use std::{
    fs::{self, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

/// Creates `directory` (0700) with exactly these files, replacing what was there. No file is
/// readable by others for a moment.
pub(crate) fn write_files(directory: &Path, files: &[PlannedFile]) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut private = fs::DirBuilder::new();
    private.recursive(true).mode(0o700);
    private.create(directory)?;
    for file in files {
        let path = directory.join(&file.path);
        if let Some(parent) = path.parent() {
            private.create(parent)?;
        }
        let mut open = OpenOptions::new();
        open.write(true).create(true).truncate(true).mode(0o600);
        let mut handle = open.open(&path)?;
        handle.write_all(&file.contents)?;
        handle.set_permissions(Permissions::from_mode(file.mode))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_their_mode_and_old_ones_go() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("volumes/token");
        let file = |path: &str, mode| PlannedFile { path: path.into(), mode, contents: b"t".to_vec() };
        write_files(&directory, &[file("old", 0o644)]).unwrap();
        write_files(&directory, &[file("token", 0o400), file("sub/x", 0o640)]).unwrap();
        let mode = |path: &str| fs::metadata(directory.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("."), mode("token"), mode("sub"), mode("sub/x")), (0o700, 0o400, 0o700, 0o640));
        assert!(!directory.join("old").exists());
        assert_eq!(fs::read(directory.join("token")).unwrap(), b"t");
    }
}
