//! Writes files completely or not at all.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Writes the file completely or not at all. A reader finds either the old or the new content, even after a power
/// failure.
pub fn write(file: &Path, content: &[u8]) -> std::io::Result<()> {
    replace(file, content, OpenOptions::new().mode(0o666))
}

/// The same for a credential: nobody else may read the file.
pub fn write_private(file: &Path, content: &[u8]) -> std::io::Result<()> {
    replace(file, content, OpenOptions::new().mode(0o600))
}

fn replace(file: &Path, content: &[u8], options: &mut OpenOptions) -> std::io::Result<()> {
    let unfinished = file.with_extension(format!("{}.tmp", std::process::id()));
    // One that a process with the same number has left could have another mode.
    let _ = std::fs::remove_file(&unfinished);
    let written = write_to_disk(&unfinished, content, options.write(true).create_new(true));
    let written = written.and_then(|()| std::fs::rename(&unfinished, file));
    if written.is_err() {
        // The error of the write matters, not that of the removal.
        let _ = std::fs::remove_file(&unfinished);
    }
    written
}

fn write_to_disk(file: &Path, content: &[u8], options: &OpenOptions) -> std::io::Result<()> {
    let mut file = options.open(file)?;
    file.write_all(content)?;
    file.sync_all()
}
