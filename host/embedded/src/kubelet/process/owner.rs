//! Directories for containers that run as another user.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::{PermissionsExt, lchown},
    path::Path,
};

/// Gives a directory and everything in it to the user.
pub(super) fn give(path: &Path, (uid, gid): (u32, u32)) -> io::Result<()> {
    lchown(path, Some(uid), Some(gid))?;
    if fs::symlink_metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), (uid, gid))?;
        }
    }
    Ok(())
}

/// Lets other users pass through a directory without seeing what is in it.
pub(super) fn let_pass(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(0o711))
}
